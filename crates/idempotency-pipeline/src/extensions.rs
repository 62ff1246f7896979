use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Values by type, shared by the stages of one call.
///
/// Allocates only once something is put in.
#[derive(Default)]
pub struct Extensions(Mutex<Option<Values>>);

type Values = HashMap<TypeId, Box<dyn Any + Send>>;

impl Extensions {
    /// Puts `value` in and gives back the one of the same type that was there.
    pub fn insert<T: Any + Send>(&self, value: T) -> Option<T> {
        self.with(|values| values.insert(TypeId::of::<T>(), Box::new(value)))
            .and_then(downcast)
    }

    /// Takes the value of this type out.
    pub fn take<T: Any + Send>(&self) -> Option<T> {
        self.with(|values| values.remove(&TypeId::of::<T>()))
            .and_then(downcast)
    }

    /// A copy of the value of this type.
    pub fn get<T: Any + Send + Clone>(&self) -> Option<T> {
        self.with(|values| {
            values
                .get(&TypeId::of::<T>())
                .and_then(|value| value.downcast_ref::<T>())
                .cloned()
        })
    }

    fn with<R>(&self, work: impl FnOnce(&mut Values) -> R) -> R {
        // No code of ours panics while it holds the lock, and a map is whole at any time.
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(values.get_or_insert_default())
    }
}

fn downcast<T: Any>(value: Box<dyn Any + Send>) -> Option<T> {
    value.downcast().ok().map(|value| *value)
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_by_type() {
        let extensions = Extensions::default();
        assert_eq!(extensions.insert(1_u32), None);
        assert_eq!(extensions.insert("text"), None);
        assert_eq!(extensions.insert(2_u32), Some(1));
        assert_eq!(extensions.get::<u32>(), Some(2));
        assert_eq!(extensions.take::<u32>(), Some(2));
        assert_eq!(extensions.get::<u32>(), None);
        assert_eq!(extensions.get::<&str>(), Some("text"));
    }
}
