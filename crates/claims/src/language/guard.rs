//! Operators and sequences with limits, because Starlark itself has no limits for them.
//!
//! Starlark has no endless loops, but `[0] * 2000000000` and comparisons of deeply repeated lists are as harmful.
//! Numbers pass unchanged. Within its limits an operator must keep its meaning.

use starlark::environment::GlobalsBuilder;
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::values::dict::DictRef;
use starlark::values::float::UnpackFloat;
use starlark::values::list::ListRef;
use starlark::values::none::NoneOr;
use starlark::values::tuple::{TupleRef, UnpackTuple};
use starlark::values::{Heap, UnpackValue, Value};
use std::cmp::Ordering;

/// Limit of the items of a sequence.
pub const ITEMS_MAX: usize = 10_000;
/// Limit of the items of a compared value, including items of items.
const WEIGHT_MAX: usize = 100_000;
/// Limit of the nesting of compared values.
const NESTING_MAX: usize = 8;
/// The largest shift: a greater one exceeds every machine integer.
const SHIFT_MAX: i32 = 62;

/// Operators, and the functions that replace them.
pub const OPERATORS: &[(&str, &str)] = &[
    ("*", "_product"),
    ("+", "_plus"),
    ("%", "_rest"),
    ("<<", "_shifted"),
    ("==", "_equal"),
    ("!=", "_unequal"),
    ("<", "_less"),
    (">", "_greater"),
    ("<=", "_at_most"),
    (">=", "_at_least"),
    ("in", "_within"),
    ("not in", "_not_within"),
];

/// An error that the check itself causes.
pub fn wrong(text: impl Into<String>) -> starlark::Error {
    starlark::Error::new_other(error_of(text.into()))
}

/// An error of Starlark can contain any standard error.
fn error_of(text: String) -> impl std::error::Error + Send + Sync + 'static {
    #[derive(Debug)]
    struct Text(String);
    impl std::fmt::Display for Text {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(&self.0)
        }
    }
    impl std::error::Error for Text {}
    Text(text)
}

/// The value as a float, if it is a number.
pub fn number(value: Value<'_>) -> Option<f64> {
    UnpackFloat::unpack_value(value).ok().flatten().map(|UnpackFloat(number)| number)
}

/// The items of a sequence whose size is within the limit.
pub fn items<'v>(value: Value<'v>, heap: Heap<'v>) -> starlark::Result<Vec<Value<'v>>> {
    let mut items = Vec::new();
    for item in value.iterate(heap)? {
        if items.len() == ITEMS_MAX {
            return Err(wrong(format!("a sequence has more than {ITEMS_MAX} items")));
        }
        items.push(item);
    }
    Ok(items)
}

/// Refuse values that are too large for a comparison.
fn weigh(value: Value<'_>) -> starlark::Result<()> {
    fn count(value: Value<'_>, depth: usize, left: &mut usize) -> bool {
        if *left == 0 || depth > NESTING_MAX {
            return false;
        }
        *left -= 1;
        if let Some(list) = ListRef::from_value(value) {
            return list.content().iter().all(|item| count(*item, depth + 1, left));
        }
        if let Some(tuple) = TupleRef::from_value(value) {
            return tuple.content().iter().all(|item| count(*item, depth + 1, left));
        }
        if let Some(dict) = DictRef::from_value(value) {
            return dict.iter().all(|(key, item)| count(key, depth + 1, left) && count(item, depth + 1, left));
        }
        true
    }
    let mut left = WEIGHT_MAX;
    if count(value, 0, &mut left) {
        Ok(())
    } else {
        Err(wrong("a value is too large to be compared"))
    }
}

fn compared<'v>(one: Value<'v>, other: Value<'v>) -> starlark::Result<Ordering> {
    weigh(one)?;
    weigh(other)?;
    one.compare(other)
}

/// Check the number of items in a repeated sequence.
fn repeated<'v>(sequence: Value<'v>, times: Value<'v>) -> starlark::Result<()> {
    let items = usize::try_from(sequence.length()?).unwrap_or(usize::MAX);
    let times = times.unpack_i32().map_or(usize::MAX, |times| usize::try_from(times).unwrap_or(0));
    match items.checked_mul(times) {
        Some(total) if total <= ITEMS_MAX => Ok(()),
        _ => Err(wrong(format!("a sequence would have more than {ITEMS_MAX} items"))),
    }
}

/// The key of an item in a comparison: the item itself, or the result of `key`.
fn rank<'v>(item: Value<'v>, key: Key<'v>, eval: &mut Evaluator<'v, '_, '_>) -> starlark::Result<Value<'v>> {
    match key.into_option() {
        Some(key) => eval.eval_function(key, &[item], &[]),
        None => Ok(item),
    }
}

type Key<'v> = NoneOr<Value<'v>>;

fn extreme<'v>(
    name: &str,
    args: Vec<Value<'v>>,
    wanted: Ordering,
    key: Key<'v>,
    eval: &mut Evaluator<'v, '_, '_>,
) -> starlark::Result<Value<'v>> {
    let values = match args.as_slice() {
        [one] => items(*one, eval.heap())?,
        _ => args,
    };
    let mut values = values.into_iter();
    let mut best = values.next().ok_or_else(|| wrong(format!("{name} of nothing")))?;
    let mut best_rank = rank(best, key, eval)?;
    for value in values {
        let this = rank(value, key, eval)?;
        if compared(this, best_rank)? == wanted {
            (best, best_rank) = (value, this);
        }
    }
    Ok(best)
}

/// The guarded operators and functions.
pub fn guards(builder: &mut GlobalsBuilder) {
    arithmetic(builder);
    comparisons(builder);
    sequences(builder);
}

#[starlark_module]
fn arithmetic(builder: &mut GlobalsBuilder) {
    fn _product<'v>(one: Value<'v>, other: Value<'v>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        match (number(one), number(other)) {
            (Some(a), Some(b)) => match (i64::unpack_value(one)?, i64::unpack_value(other)?) {
                (Some(a), Some(b)) => {
                    a.checked_mul(b).map(|product| heap.alloc(product)).ok_or_else(|| wrong("a product is too large"))
                }
                _ => Ok(heap.alloc(a * b)),
            },
            (None, _) => repeated(one, other).and_then(|()| one.mul(other, heap)),
            (_, None) => repeated(other, one).and_then(|()| one.mul(other, heap)),
        }
    }

    fn _plus<'v>(one: Value<'v>, other: Value<'v>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        if number(one).is_none() || number(other).is_none() {
            let items = i64::from(one.length()?) + i64::from(other.length()?);
            if items > i64::try_from(ITEMS_MAX).unwrap_or(i64::MAX) {
                return Err(wrong(format!("a sequence would have more than {ITEMS_MAX} items")));
            }
        }
        one.add(other, heap)
    }

    fn _rest<'v>(one: Value<'v>, other: Value<'v>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        if number(one).is_none() {
            weigh(other)?;
        }
        one.percent(other, heap)
    }

    fn _shifted<'v>(one: Value<'v>, other: Value<'v>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        if !other.unpack_i32().is_some_and(|shift| (0..=SHIFT_MAX).contains(&shift)) {
            return Err(wrong(format!("a shift by more than {SHIFT_MAX}")));
        }
        one.left_shift(other, heap)
    }
}

#[starlark_module]
fn comparisons(builder: &mut GlobalsBuilder) {
    fn _equal<'v>(one: Value<'v>, other: Value<'v>) -> starlark::Result<bool> {
        weigh(one)?;
        weigh(other)?;
        one.equals(other)
    }

    fn _unequal<'v>(one: Value<'v>, other: Value<'v>) -> starlark::Result<bool> {
        weigh(one)?;
        weigh(other)?;
        one.equals(other).map(|equal| !equal)
    }

    fn _less<'v>(one: Value<'v>, other: Value<'v>) -> starlark::Result<bool> {
        compared(one, other).map(Ordering::is_lt)
    }

    fn _greater<'v>(one: Value<'v>, other: Value<'v>) -> starlark::Result<bool> {
        compared(one, other).map(Ordering::is_gt)
    }

    fn _at_most<'v>(one: Value<'v>, other: Value<'v>) -> starlark::Result<bool> {
        compared(one, other).map(Ordering::is_le)
    }

    fn _at_least<'v>(one: Value<'v>, other: Value<'v>) -> starlark::Result<bool> {
        compared(one, other).map(Ordering::is_ge)
    }

    fn _within<'v>(one: Value<'v>, other: Value<'v>) -> starlark::Result<bool> {
        weigh(one)?;
        weigh(other)?;
        other.is_in(one)
    }

    fn _not_within<'v>(one: Value<'v>, other: Value<'v>) -> starlark::Result<bool> {
        weigh(one)?;
        weigh(other)?;
        other.is_in(one).map(|found| !found)
    }
}

#[starlark_module]
fn sequences(builder: &mut GlobalsBuilder) {
    fn range<'v>(#[starlark(args)] args: UnpackTuple<i32>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        let (start, stop, step) = match args.items.as_slice() {
            [stop] => (0, *stop, 1),
            [start, stop] => (*start, *stop, 1),
            [start, stop, step] => (*start, *stop, *step),
            _ => return Err(wrong("range takes one to three numbers")),
        };
        if step == 0 {
            return Err(wrong("range goes on by nothing"));
        }
        let (start, stop, step) = (i64::from(start), i64::from(stop), i64::from(step));
        let mut numbers = Vec::new();
        let mut next = start;
        while (step > 0 && next < stop) || (step < 0 && next > stop) {
            if numbers.len() == ITEMS_MAX {
                return Err(wrong(format!("range has more than {ITEMS_MAX} numbers")));
            }
            numbers.push(next);
            next += step;
        }
        Ok(heap.alloc(numbers))
    }

    fn max<'v>(
        #[starlark(args)] args: UnpackTuple<Value<'v>>,
        #[starlark(require = named, default = NoneOr::None)] key: NoneOr<Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        extreme("max", args.items, Ordering::Greater, key, eval)
    }

    fn min<'v>(
        #[starlark(args)] args: UnpackTuple<Value<'v>>,
        #[starlark(require = named, default = NoneOr::None)] key: NoneOr<Value<'v>>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        extreme("min", args.items, Ordering::Less, key, eval)
    }

    fn str<'v>(#[starlark(require = pos)] x: Value<'v>) -> starlark::Result<String> {
        weigh(x)?;
        Ok(x.to_str())
    }

    fn sorted<'v>(
        #[starlark(require = pos)] x: Value<'v>,
        #[starlark(require = named, default = NoneOr::None)] key: NoneOr<Value<'v>>,
        #[starlark(require = named, default = false)] reverse: bool,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Vec<Value<'v>>> {
        let mut values = Vec::new();
        for item in items(x, eval.heap())? {
            values.push((rank(item, key, eval)?, item));
        }
        let mut failed = None;
        values.sort_by(|(one, _), (other, _)| {
            let order = compared(*one, *other).unwrap_or_else(|error| {
                failed.get_or_insert(error);
                Ordering::Equal
            });
            if reverse {
                order.reverse()
            } else {
                order
            }
        });
        failed.map_or_else(|| Ok(values.into_iter().map(|(_, item)| item).collect()), Err)
    }
}
