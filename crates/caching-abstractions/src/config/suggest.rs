/// The candidate that `text` is most likely a misspelling of, if there is one.
pub(crate) fn nearest<'a>(
    text: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let text = text.to_lowercase();
    // A third of the letters may be wrong; more than that is another word.
    let most = text.chars().count().max(3) / 3;
    candidates
        .into_iter()
        .map(|candidate| (distance(&text, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be changed, added, dropped or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, r) in right.iter().enumerate() {
            let change = above[j] + usize::from(l != r);
            let mut best = change.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *l == right[j - 1] && left[i - 1] == *r {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c1_a_typo_finds_its_word() {
        let words = ["Provider", "KeyPrefix", "Redis"];
        for (typo, word) in [
            ("Provder", "Provider"),
            ("PROVIDRE", "Provider"),
            ("keyprefx", "KeyPrefix"),
            ("Reddis", "Redis"),
        ] {
            assert_eq!(nearest(typo, words), Some(word), "{typo}");
        }
    }

    #[test]
    fn c1_another_word_finds_nothing() {
        assert_eq!(nearest("Timeout", ["Provider", "KeyPrefix"]), None);
        assert_eq!(nearest("", ["Provider"]), None);
    }

    #[test]
    fn c1_swapped_neighbours_are_one_mistake() {
        assert_eq!(distance("redis", "reids"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
