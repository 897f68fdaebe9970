//! The arguments of a call, by their places and names.

use super::value::CheckValue;
use super::{wrong, CheckError};
use crate::subject::clip;

/// The evaluated arguments of a call.
#[derive(Default)]
pub struct CallArguments<'e> {
    /// Arguments without a name, in their order.
    pub placed: Vec<CheckValue<'e>>,
    /// Arguments with a name.
    pub named: Vec<(&'e str, CheckValue<'e>)>,
}

impl<'e> CallArguments<'e> {
    /// All arguments of a function with these parameters.
    ///
    /// # Errors
    /// One is missing, is given twice, or has another name.
    pub fn all<const N: usize>(self, function: &str, names: [&str; N]) -> Result<[CheckValue<'e>; N], CheckError> {
        let (needed, []) = self.some(function, names, [])?;
        Ok(needed)
    }

    /// The arguments of a function with these parameters, of which the last ones are optional.
    ///
    /// # Errors
    /// A needed one is missing, one is given twice, or has another name.
    pub fn some<const N: usize, const O: usize>(
        self,
        function: &str,
        needed: [&str; N],
        optional: [&str; O],
    ) -> Result<([CheckValue<'e>; N], [Option<CheckValue<'e>>; O]), CheckError> {
        let names: Vec<&str> = needed.into_iter().chain(optional).collect();
        if self.placed.len() > names.len() {
            return Err(wrong(format!("{function} takes {} at most", names.join(", "))));
        }
        let mut values: Vec<Option<CheckValue<'e>>> = self.placed.into_iter().map(Some).collect();
        values.resize(names.len(), None);
        for (name, value) in self.named {
            let place = names.iter().position(|known| *known == name);
            let place = place.ok_or_else(|| {
                wrong(format!("{function} has no argument '{}'; known are {}", clip(name), names.join(", ")))
            })?;
            if values[place].replace(value).is_some() {
                return Err(wrong(format!("{function}: {name} is given twice")));
            }
        }
        let missing = needed.iter().zip(&values).find(|(_, value)| value.is_none());
        if let Some((name, _)) = missing {
            return Err(wrong(format!("{function} needs {name}")));
        }
        let mut values = values.into_iter();
        let first = std::array::from_fn(|_| values.next().flatten().unwrap_or(CheckValue::None));
        Ok((first, std::array::from_fn(|_| values.next().flatten())))
    }
}
