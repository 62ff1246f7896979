use bytes::Bytes;
use caching_abstractions::CachingError;

use super::Execution;
use super::background::Fate;

/// What the one round trip at the start found (P5, P8).
pub(super) enum Claim {
    /// The key was free, and our marker stands there now.
    Won,
    /// What stands there instead.
    Taken(Bytes),
}

impl Execution {
    /// Writes the marker if the key is free.
    ///
    /// A marker that may have been written without our knowing, because the store did not answer
    /// or because the caller went away meanwhile, is removed in the background (P14).
    pub(super) async fn claim(&self) -> Result<Claim, CachingError> {
        let unsettled = Unsettled(Some(self));
        let answer = self
            .store()
            .get_or_add(&self.key, self.marker.clone(), self.marker_options())
            .await;
        match answer {
            Ok(None) => {
                unsettled.settled();
                Ok(Claim::Won)
            }
            // Our own marker: the store had applied an attempt whose reply was lost.
            Ok(Some(found)) if found == self.marker => {
                unsettled.settled();
                Ok(Claim::Won)
            }
            Ok(Some(found)) => {
                unsettled.settled();
                Ok(Claim::Taken(found))
            }
            Err(error) => {
                if !error.may_have_been_applied() {
                    unsettled.settled();
                }
                Err(error)
            }
        }
    }
}

/// Removes the marker in the background unless the store's answer settled the question.
struct Unsettled<'a>(Option<&'a Execution>);

impl Unsettled<'_> {
    fn settled(mut self) {
        self.0 = None;
    }
}

impl Drop for Unsettled<'_> {
    fn drop(&mut self) {
        if let Some(execution) = self.0 {
            execution.remove_marker_in_background(Fate::Unknown);
        }
    }
}
