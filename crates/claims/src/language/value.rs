//! The values of a check, and the operators between them. They have the meaning that they have in Python.
//!
//! An operator must never make a sequence of more than [`ITEMS_MAX`] items, or a number that is not finite.

use super::syntax::{CompareOperator, ExprNode, Operator};
use super::walk::{Scope, Walk};
use super::{wrong, CheckError};
use crate::metric::Metric;
use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;

/// Limit of the items of a sequence, and of the bytes of a text.
pub const ITEMS_MAX: usize = 10_000;
/// The largest shift: a greater one exceeds every machine integer.
const SHIFT_MAX: i64 = 62;
/// Limit of the nesting of values that are compared or written.
pub const NESTING_MAX: usize = 8;

/// A value. Those of a check's own functions refer to its expression.
#[derive(Clone, PartialEq, Debug)]
pub enum CheckValue<'e> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Rc<str>),
    List(Rc<[Self]>),
    Tuple(Rc<[Self]>),
    Dict(Rc<[(Self, Self)]>),
    Metric(Metric),
    Builtin(Builtin),
    Lambda(Rc<Lambda<'e>>),
}

/// A function of the language.
#[derive(Clone, Copy)]
pub struct Builtin {
    /// Its name in a check.
    pub name: &'static str,
    /// Its computation.
    pub run: for<'e> fn(&mut Walk<'e, '_>, super::arguments::CallArguments<'e>) -> super::Answer<'e>,
}

impl PartialEq for Builtin {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A function of the check itself, with the variables of the place where it stands.
#[derive(Clone, PartialEq, Debug)]
pub struct Lambda<'e> {
    /// Names of its parameters.
    pub parameters: &'e [String],
    pub body: &'e ExprNode,
    /// Variables outside of it.
    pub scope: Scope<'e>,
}

impl<'e> CheckValue<'e> {
    /// The value of a text.
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// Its type, in the words of Python.
    pub const fn sort(&self) -> &'static str {
        match self {
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::Metric(_) | Self::Builtin(_) | Self::Lambda(_) => "function",
        }
    }

    /// The value as a float, if it is a number.
    #[allow(clippy::cast_precision_loss)] // as Python does
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// The items of a list or a tuple.
    pub fn items(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) | Self::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// Whether it counts as true.
    pub fn truth(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(truth) => *truth,
            Self::Int(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(items) | Self::Tuple(items) => !items.is_empty(),
            Self::Dict(pairs) => !pairs.is_empty(),
            Self::Metric(_) | Self::Builtin(_) | Self::Lambda(_) => true,
        }
    }

    /// Number of items of a sequence, and of bytes of a text.
    pub fn length(&self) -> Option<usize> {
        match self {
            Self::Text(text) => Some(text.len()),
            Self::Dict(pairs) => Some(pairs.len()),
            other => other.items().map(<[Self]>::len),
        }
    }
}

/// Computes and compares values within a limit of steps.
pub trait StepLimit {
    /// Take steps for work whose length depends on a value.
    ///
    /// # Errors
    /// The check has no steps left.
    fn spend(&mut self, steps: usize) -> Result<(), CheckError>;
}

type Computed<'e> = Result<CheckValue<'e>, CheckError>;

/// A number, which must be finite.
pub fn finite<'e>(number: f64) -> Computed<'e> {
    if number.is_finite() {
        Ok(CheckValue::Float(number))
    } else {
        Err(wrong("the result is too large for a number"))
    }
}

/// Two values joined by an operator.
///
/// # Errors
/// The operator does not apply to these values, or the result exceeds a limit.
pub fn operate<'e>(
    steps: &mut impl StepLimit,
    operator: Operator,
    one: &CheckValue<'e>,
    other: &CheckValue<'e>,
) -> Computed<'e> {
    if let (CheckValue::Int(one), CheckValue::Int(other)) = (one, other) {
        return whole(operator, *one, *other);
    }
    if let (Some(one), Some(other)) = (one.number(), other.number()) {
        return real(operator, one, other);
    }
    match (operator, one, other) {
        (Operator::Add, CheckValue::Text(one), CheckValue::Text(other)) => joined_text(steps, &[one, other]),
        (Operator::Add, CheckValue::List(one), CheckValue::List(other)) => {
            joined(steps, one, other).map(CheckValue::List)
        }
        (Operator::Add, CheckValue::Tuple(one), CheckValue::Tuple(other)) => {
            joined(steps, one, other).map(CheckValue::Tuple)
        }
        (Operator::Multiply, CheckValue::Int(times), sequence)
        | (Operator::Multiply, sequence, CheckValue::Int(times)) => repeated(steps, sequence, *times),
        (Operator::Remainder, CheckValue::Text(text), _) => super::format::by_percent(steps, text, other),
        _ => Err(unfit(operator, one, other)),
    }
}

fn unfit(operator: Operator, one: &CheckValue<'_>, other: &CheckValue<'_>) -> CheckError {
    let word = match operator {
        Operator::Add => "added",
        Operator::Subtract => "subtracted",
        Operator::Multiply => "multiplied",
        Operator::Divide | Operator::Floor | Operator::Remainder => "divided",
        Operator::ShiftLeft | Operator::ShiftRight => "shifted",
    };
    wrong(format!("{} and {} cannot be {word}", one.sort(), other.sort()))
}

fn whole<'e>(operator: Operator, one: i64, other: i64) -> Computed<'e> {
    let divided = |computed: Option<i64>| if other == 0 { Err(wrong("division by zero")) } else { Ok(computed) };
    let computed = match operator {
        Operator::Add => one.checked_add(other),
        Operator::Subtract => one.checked_sub(other),
        Operator::Multiply => one.checked_mul(other),
        #[allow(clippy::cast_precision_loss)] // as Python does
        Operator::Divide => return real(operator, one as f64, other as f64),
        // Rounded down: one less than the quotient if the remainder has not the sign of the divisor.
        Operator::Floor => {
            let down = |rest: i64| i64::from(rest != 0 && (rest < 0) != (other < 0));
            let rest = divided(one.checked_rem(other))?;
            rest.and_then(|rest| one.checked_div(other).map(|quotient| quotient - down(rest)))
        }
        Operator::Remainder => {
            let rest = divided(one.checked_rem(other))?;
            rest.map(|rest| if rest != 0 && (rest < 0) != (other < 0) { rest + other } else { rest })
        }
        Operator::ShiftLeft | Operator::ShiftRight => {
            let shift = u32::try_from(other).ok().filter(|shift| i64::from(*shift) <= SHIFT_MAX);
            let shift = shift.ok_or_else(|| wrong(format!("a shift is from 0 to {SHIFT_MAX}")))?;
            if operator == Operator::ShiftRight {
                Some(one >> shift)
            } else {
                one.checked_mul(1 << shift)
            }
        }
    };
    computed.map(CheckValue::Int).ok_or_else(|| wrong("the result is too large for a whole number; write one as 1e3"))
}

fn real<'e>(operator: Operator, one: f64, other: f64) -> Computed<'e> {
    if other == 0.0 && matches!(operator, Operator::Divide | Operator::Floor | Operator::Remainder) {
        return Err(wrong("division by zero"));
    }
    finite(match operator {
        Operator::Add => one + other,
        Operator::Subtract => one - other,
        Operator::Multiply => one * other,
        Operator::Divide => one / other,
        Operator::Floor => (one / other).floor(),
        Operator::Remainder => one - other * (one / other).floor(),
        Operator::ShiftLeft | Operator::ShiftRight => {
            return Err(unfit(operator, &CheckValue::Float(one), &CheckValue::Float(other)))
        }
    })
}

/// Refuse a sequence or a text of this length, and take steps for its making.
///
/// # Errors
/// It is too long.
pub fn make(steps: &mut impl StepLimit, length: Option<usize>) -> Result<(), CheckError> {
    match length.filter(|length| *length <= ITEMS_MAX) {
        Some(length) => steps.spend(length),
        None => Err(wrong(format!("a sequence would have more than {ITEMS_MAX} items; make it shorter"))),
    }
}

fn joined<'e>(
    steps: &mut impl StepLimit,
    one: &[CheckValue<'e>],
    other: &[CheckValue<'e>],
) -> Result<Rc<[CheckValue<'e>]>, CheckError> {
    make(steps, one.len().checked_add(other.len()))?;
    Ok(one.iter().chain(other).cloned().collect())
}

/// Texts, one after the other.
///
/// # Errors
/// The result is too long.
pub fn joined_text<'e>(steps: &mut impl StepLimit, parts: &[&str]) -> Computed<'e> {
    make(steps, Some(parts.iter().map(|part| part.len()).sum()))?;
    Ok(CheckValue::Text(parts.concat().into()))
}

fn repeated<'e>(steps: &mut impl StepLimit, sequence: &CheckValue<'e>, times: i64) -> Computed<'e> {
    // A negative number repeats nothing, as 0 does.
    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
    if matches!(sequence, CheckValue::Dict(_)) || sequence.length().is_none() {
        return Err(unfit(Operator::Multiply, sequence, &CheckValue::Int(0)));
    }
    make(steps, sequence.length().and_then(|length| length.checked_mul(times)))?;
    let many = |items: &[CheckValue<'e>]| -> Rc<[CheckValue<'e>]> {
        (0..times).take_while(|_| !items.is_empty()).flat_map(|_| items.iter().cloned()).collect()
    };
    Ok(match sequence {
        CheckValue::Text(text) if text.is_empty() => CheckValue::text(""),
        CheckValue::Text(text) => CheckValue::Text(text.repeat(times).into()),
        CheckValue::List(items) => CheckValue::List(many(items)),
        CheckValue::Tuple(items) => CheckValue::Tuple(many(items)),
        _ => panic!("bug: only sequences are repeated"),
    })
}

/// Two values compared.
///
/// # Errors
/// They have no order, or are too large.
pub fn compare<'e>(
    steps: &mut impl StepLimit,
    comparison: CompareOperator,
    one: &CheckValue<'e>,
    other: &CheckValue<'e>,
) -> Result<bool, CheckError> {
    Ok(match comparison {
        CompareOperator::Equal => equal(steps, one, other, 0)?,
        CompareOperator::Unequal => !equal(steps, one, other, 0)?,
        CompareOperator::Less => order(steps, one, other, 0)?.is_lt(),
        CompareOperator::AtMost => order(steps, one, other, 0)?.is_le(),
        CompareOperator::Greater => order(steps, one, other, 0)?.is_gt(),
        CompareOperator::AtLeast => order(steps, one, other, 0)?.is_ge(),
        CompareOperator::In => holds(steps, one, other)?,
        CompareOperator::NotIn => !holds(steps, one, other)?,
    })
}

/// One level of a value deeper, with a step.
fn descend(steps: &mut impl StepLimit, depth: usize) -> Result<usize, CheckError> {
    steps.spend(1)?;
    if depth > NESTING_MAX {
        return Err(wrong(format!("lists more than {NESTING_MAX} deep are too large to be compared or written")));
    }
    Ok(depth + 1)
}

/// Whether two values are equal. Values of different types are not, except numbers.
///
/// # Errors
/// They are too large.
pub fn equal<'e>(
    steps: &mut impl StepLimit,
    one: &CheckValue<'e>,
    other: &CheckValue<'e>,
    depth: usize,
) -> Result<bool, CheckError> {
    let depth = descend(steps, depth)?;
    if let (Some(one), Some(other)) = (one.number(), other.number()) {
        return Ok(one == other);
    }
    match (one, other) {
        (CheckValue::List(one), CheckValue::List(other)) | (CheckValue::Tuple(one), CheckValue::Tuple(other)) => {
            if one.len() != other.len() {
                return Ok(false);
            }
            for (one, other) in one.iter().zip(other.iter()) {
                if !equal(steps, one, other, depth)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (CheckValue::Dict(one), CheckValue::Dict(other)) => {
            if one.len() != other.len() {
                return Ok(false);
            }
            for (key, item) in one.iter() {
                match at_key(steps, other, key)? {
                    Some(found) if equal(steps, item, found, depth)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (CheckValue::Text(one), CheckValue::Text(other)) => {
            steps.spend(one.len().min(other.len())).map(|()| one == other)
        }
        (CheckValue::Lambda(one), CheckValue::Lambda(other)) => Ok(Rc::ptr_eq(one, other)),
        (CheckValue::Lambda(_), _) | (_, CheckValue::Lambda(_)) => Ok(false),
        _ => Ok(one == other),
    }
}

/// The value of a key.
///
/// # Errors
/// The keys are too large.
pub fn at_key<'v, 'e>(
    steps: &mut impl StepLimit,
    pairs: &'v [(CheckValue<'e>, CheckValue<'e>)],
    key: &CheckValue<'e>,
) -> Result<Option<&'v CheckValue<'e>>, CheckError> {
    for (known, item) in pairs {
        if equal(steps, known, key, 0)? {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

/// The order of two values of one type.
///
/// # Errors
/// They have no order, or are too large.
pub fn order<'e>(
    steps: &mut impl StepLimit,
    one: &CheckValue<'e>,
    other: &CheckValue<'e>,
    depth: usize,
) -> Result<Ordering, CheckError> {
    let depth = descend(steps, depth)?;
    match (one, other) {
        (CheckValue::Int(one), CheckValue::Int(other)) => return Ok(one.cmp(other)),
        (CheckValue::Bool(one), CheckValue::Bool(other)) => return Ok(one.cmp(other)),
        (CheckValue::Text(one), CheckValue::Text(other)) => return steps.spend(one.len()).map(|()| one.cmp(other)),
        (CheckValue::List(one), CheckValue::List(other)) | (CheckValue::Tuple(one), CheckValue::Tuple(other)) => {
            for (one, other) in one.iter().zip(other.iter()) {
                let found = order(steps, one, other, depth)?;
                if found.is_ne() {
                    return Ok(found);
                }
            }
            return Ok(one.len().cmp(&other.len()));
        }
        _ => {}
    }
    let numbers = one.number().zip(other.number());
    let found = numbers.and_then(|(one, other)| one.partial_cmp(&other));
    found.ok_or_else(|| wrong(format!("{} and {} have no order", one.sort(), other.sort())))
}

fn holds<'e>(steps: &mut impl StepLimit, one: &CheckValue<'e>, other: &CheckValue<'e>) -> Result<bool, CheckError> {
    match (one, other) {
        (CheckValue::Text(part), CheckValue::Text(whole)) => {
            return steps.spend(whole.len()).map(|()| whole.contains(&**part));
        }
        (_, CheckValue::Dict(pairs)) => return Ok(at_key(steps, pairs, one)?.is_some()),
        _ => {}
    }
    let Some(items) = other.items() else {
        return Err(wrong(format!("{} cannot be in {}; name a list", one.sort(), other.sort())));
    };
    for item in items {
        if equal(steps, one, item, 0)? {
            return Ok(true);
        }
    }
    Ok(false)
}
