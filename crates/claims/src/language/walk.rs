//! The evaluation of a check: a walk over its expression.
//!
//! The walk must never take more than [`STEPS_MAX`] steps, and never descend deeper than [`DEPTH_MAX`].

use super::arguments::CallArguments;
use super::syntax::{parse, Argument, Clause, CompareOperator, Expr, ExprNode, Operator, ValueMethod};
use super::value::{at_key, compare, equal, finite, make, operate, CheckValue, Lambda, StepLimit, ITEMS_MAX};
use super::{format, functions, metrics, names, wrong, Answer, CheckError, EvaluationStop};
use crate::claim::Claim;
use crate::metric::{MetricCall, MetricValue, NotApplicable};
use std::rc::Rc;

/// Limit of the steps: evaluated expressions, items of sequences that are made, and compared items.
const STEPS_MAX: usize = 5_000_000;
/// Limit of the metric calls of one check, including repeated ones.
const CALLS_MAX: usize = 20_000;
/// Limit of the descent into expressions, including those of functions that are called.
const DEPTH_MAX: usize = 2 * super::syntax::DEPTH_MAX;

/// The source of the values of metrics.
pub type Ask<'a> = dyn FnMut(MetricCall) -> Result<MetricValue, NotApplicable> + 'a;

/// A variable, and the variables outside of its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Variable<'e> {
    name: &'e str,
    value: CheckValue<'e>,
    outer: Scope<'e>,
}

/// The variables of a place.
pub type Scope<'e> = Option<Rc<Variable<'e>>>;

/// One evaluation.
pub struct Walk<'e, 'm> {
    pub claim: &'e Claim,
    ask: &'m mut Ask<'m>,
    steps: usize,
    calls: usize,
    depth: usize,
}

/// Evaluate the check of a claim.
///
/// # Errors
/// The check is wrong, or a metric has no meaning.
pub fn evaluate(claim: &Claim, ask: &mut Ask<'_>) -> Result<bool, EvaluationStop> {
    let node = parse(&claim.check)?;
    names::resolve(&node)?;
    let ask = &mut |call: MetricCall| ask(call);
    let mut walk = Walk { claim, ask, steps: STEPS_MAX, calls: 0, depth: 0 };
    match walk.value(&node, &None)? {
        CheckValue::Bool(truth) => Ok(truth),
        other => {
            let text = format!("the check comes to a value of type {}, not to true or false; compare it", other.sort());
            Err(EvaluationStop::Wrong(wrong(text)))
        }
    }
}

impl StepLimit for Walk<'_, '_> {
    fn spend(&mut self, steps: usize) -> Result<(), CheckError> {
        let left = self.steps.checked_sub(steps);
        self.steps = left.ok_or_else(|| {
            wrong(format!("the check takes more than {STEPS_MAX} steps; use fewer loops or shorter lists"))
        })?;
        Ok(())
    }
}

impl<'e> Walk<'e, '_> {
    /// The value of a metric.
    ///
    /// # Errors
    /// The metric has no meaning, or too many were asked for.
    pub fn measured(&mut self, call: MetricCall) -> Result<MetricValue, EvaluationStop> {
        self.calls += 1;
        if self.calls > CALLS_MAX {
            return Err(wrong(format!("more than {CALLS_MAX} metrics are asked for; use shorter lists")).into());
        }
        (self.ask)(call).map_err(EvaluationStop::NotApplicable)
    }

    /// The items of a value, in their order; those of a dictionary are its keys.
    ///
    /// # Errors
    /// It has no items.
    pub fn items(&mut self, value: &CheckValue<'e>) -> Result<Vec<CheckValue<'e>>, CheckError> {
        let items = match value {
            CheckValue::Dict(pairs) => pairs.iter().map(|(key, _)| key.clone()).collect(),
            other => match other.items() {
                Some(items) => items.to_vec(),
                None => return Err(wrong(format!("{} has no items; name a list", other.sort()))),
            },
        };
        self.spend(items.len())?;
        Ok(items)
    }

    /// Call a value.
    ///
    /// # Errors
    /// It is not a function, or the arguments do not fit it.
    pub fn call(&mut self, function: &CheckValue<'e>, arguments: CallArguments<'e>) -> Answer<'e> {
        match function {
            CheckValue::Metric(metric) => metrics::ask(self, *metric, &arguments),
            CheckValue::Builtin(function) => (function.run)(self, arguments),
            CheckValue::Lambda(lambda) => {
                let Lambda { parameters, body, scope } = &**lambda;
                if !arguments.named.is_empty() || arguments.placed.len() != parameters.len() {
                    let text = format!("this function takes {} arguments, without names", parameters.len());
                    return Err(wrong(text).into());
                }
                let values = parameters.iter().zip(arguments.placed);
                let scope = values.fold(scope.clone(), |outer, (name, value)| bound(name, value, outer));
                self.value(body, &scope)
            }
            other => Err(wrong(format!("{} is not a function", other.sort())).into()),
        }
    }

    fn value(&mut self, node: &'e ExprNode, scope: &Scope<'e>) -> Answer<'e> {
        self.depth += 1;
        let value = if self.depth > DEPTH_MAX {
            Err(wrong(format!("functions and expressions are nested more than {DEPTH_MAX} deep; use fewer")).into())
        } else {
            self.spend(1).map_err(EvaluationStop::from).and_then(|()| self.expression(&node.expr, scope))
        };
        self.depth -= 1;
        value.map_err(|stop| match stop {
            EvaluationStop::Wrong(error) => EvaluationStop::Wrong(error.or_at(node.at)),
            other => other,
        })
    }

    /// Each kind with inner values has a function of its own, so that a level of the descent takes little of the stack.
    fn expression(&mut self, expr: &'e Expr, scope: &Scope<'e>) -> Answer<'e> {
        match expr {
            Expr::Literal(value) => Ok(value.clone()),
            Expr::Name(name) => self.named(name, scope),
            Expr::List(items) => self.values(items, scope).map(|items| CheckValue::List(items.into())),
            Expr::Tuple(items) => self.values(items, scope).map(|items| CheckValue::Tuple(items.into())),
            Expr::Dict(pairs) => self.dict(pairs, scope),
            Expr::Comprehension { key, item, clauses } => self.comprehension(key.as_deref(), item, clauses, scope),
            Expr::Not(opposite, of) => self.value(of, scope).map(|value| CheckValue::Bool(value.truth() != *opposite)),
            Expr::Negative(of) => self.value(of, scope).and_then(|value| Ok(negative(&value)?)),
            Expr::Chain(first, others) => self.chain(first, others, scope),
            Expr::Compare(one, comparison, other) => self.compared(one, *comparison, other, scope),
            Expr::And(parts) => self.joined(parts, false, scope),
            Expr::Or(parts) => self.joined(parts, true, scope),
            Expr::Choice(parts) => self.choice(parts, scope),
            Expr::Lambda(parameters, body) => {
                Ok(CheckValue::Lambda(Rc::new(Lambda { parameters, body, scope: scope.clone() })))
            }
            Expr::Call(function, arguments) => self.called(function, arguments, scope),
            Expr::Method(of, method, arguments) => self.method(of, *method, arguments, scope),
            Expr::Index(of, index) => self.at_index(of, index, scope),
            Expr::Slice(of, parts) => self.slice(of, parts, scope),
        }
    }

    fn dict(&mut self, pairs: &'e [(ExprNode, ExprNode)], scope: &Scope<'e>) -> Answer<'e> {
        let mut made = Vec::new();
        for (key, item) in pairs {
            let (key, item) = (self.value(key, scope)?, self.value(item, scope)?);
            self.insert(&mut made, key, item)?;
        }
        Ok(CheckValue::Dict(made.into()))
    }

    fn chain(
        &mut self,
        first: &'e ExprNode,
        others: &'e [(usize, Operator, ExprNode)],
        scope: &Scope<'e>,
    ) -> Answer<'e> {
        let mut value = self.value(first, scope)?;
        for (at, operator, other) in others {
            let other = self.value(other, scope)?;
            value = operate(self, *operator, &value, &other).map_err(|error| error.or_at(*at))?;
        }
        Ok(value)
    }

    fn compared(
        &mut self,
        one: &'e ExprNode,
        by: CompareOperator,
        other: &'e ExprNode,
        scope: &Scope<'e>,
    ) -> Answer<'e> {
        let (one, other) = (self.value(one, scope)?, self.value(other, scope)?);
        Ok(CheckValue::Bool(compare(self, by, &one, &other)?))
    }

    fn choice(&mut self, parts: &'e [ExprNode; 3], scope: &Scope<'e>) -> Answer<'e> {
        let [yes, condition, no] = parts;
        let chosen = if self.value(condition, scope)?.truth() { yes } else { no };
        self.value(chosen, scope)
    }

    fn called(&mut self, function: &'e ExprNode, arguments: &'e [Argument], scope: &Scope<'e>) -> Answer<'e> {
        let function = self.value(function, scope)?;
        let arguments = self.arguments(arguments, scope)?;
        self.call(&function, arguments)
    }

    fn named(&self, name: &'e str, scope: &Scope<'e>) -> Answer<'e> {
        let mut variables = scope.as_ref();
        while let Some(variable) = variables {
            if variable.name == name {
                return Ok(variable.value.clone());
            }
            variables = variable.outer.as_ref();
        }
        let known = names::value(name, self.claim.tolerance);
        Ok(known.unwrap_or_else(|| panic!("bug: '{name}' was not looked up before the evaluation")))
    }

    fn values(&mut self, nodes: &'e [ExprNode], scope: &Scope<'e>) -> Result<Vec<CheckValue<'e>>, EvaluationStop> {
        nodes.iter().map(|node| self.value(node, scope)).collect()
    }

    /// The first part whose truth ends the chain, or else the last one.
    fn joined(&mut self, parts: &'e [ExprNode], ends: bool, scope: &Scope<'e>) -> Answer<'e> {
        let mut value = CheckValue::Bool(!ends);
        for part in parts {
            value = self.value(part, scope)?;
            if value.truth() == ends {
                break;
            }
        }
        Ok(value)
    }

    fn arguments(&mut self, given: &'e [Argument], scope: &Scope<'e>) -> Result<CallArguments<'e>, EvaluationStop> {
        let mut arguments = CallArguments::default();
        for argument in given {
            let value = self.value(&argument.value, scope)?;
            match &argument.name {
                Some(name) => arguments.named.push((name, value)),
                None => arguments.placed.push(value),
            }
        }
        Ok(arguments)
    }

    /// Put an item into a dictionary. A later one with an equal key replaces it.
    fn insert(
        &mut self,
        pairs: &mut Vec<(CheckValue<'e>, CheckValue<'e>)>,
        key: CheckValue<'e>,
        item: CheckValue<'e>,
    ) -> Result<(), CheckError> {
        for (known, old) in pairs.iter_mut() {
            if equal(self, known, &key, 0)? {
                *old = item;
                return Ok(());
            }
        }
        pairs.push((key, item));
        make(self, Some(pairs.len()))
    }

    fn comprehension(
        &mut self,
        key: Option<&'e ExprNode>,
        item: &'e ExprNode,
        clauses: &'e [Clause],
        scope: &Scope<'e>,
    ) -> Answer<'e> {
        let (mut items, mut pairs) = (Vec::new(), Vec::new());
        self.each(clauses, scope, &mut |walk, scope| {
            let Some(key) = key else {
                items.push(walk.value(item, scope)?);
                if items.len() > ITEMS_MAX {
                    return Err(wrong(format!("a list has more than {ITEMS_MAX} items; use fewer loops")).into());
                }
                return Ok(());
            };
            let (key, item) = (walk.value(key, scope)?, walk.value(item, scope)?);
            Ok(walk.insert(&mut pairs, key, item)?)
        })?;
        Ok(if key.is_some() { CheckValue::Dict(pairs.into()) } else { CheckValue::List(items.into()) })
    }

    /// Do something for each round of the loops whose conditions hold.
    fn each(
        &mut self,
        clauses: &'e [Clause],
        scope: &Scope<'e>,
        work: &mut Round<'_, 'e>,
    ) -> Result<(), EvaluationStop> {
        let conditions = clauses.iter().take_while(|clause| matches!(clause, Clause::If(_))).count();
        for clause in &clauses[..conditions] {
            let Clause::If(condition) = clause else { continue };
            if !self.value(condition, scope)?.truth() {
                return Ok(());
            }
        }
        let Some((Clause::For(names, of), inner)) = clauses[conditions..].split_first() else {
            return work(self, scope);
        };
        let of_loop = self.value(of, scope)?;
        for item in self.items(&of_loop).map_err(|error| error.or_at(of.at))? {
            let scope = match names.as_slice() {
                [name] => bound(name, item, scope.clone()),
                names => {
                    let parts = item.items().filter(|parts| parts.len() == names.len());
                    let parts = parts.ok_or_else(|| {
                        wrong(format!("an item of the loop has not {} parts, one for each name", names.len()))
                            .or_at(of.at)
                    })?;
                    let parts = names.iter().zip(parts);
                    parts.fold(scope.clone(), |outer, (name, part)| bound(name, part.clone(), outer))
                }
            };
            self.each(inner, &scope, work)?;
        }
        Ok(())
    }

    fn method(
        &mut self,
        of: &'e ExprNode,
        method: ValueMethod,
        given: &'e [Argument],
        scope: &Scope<'e>,
    ) -> Answer<'e> {
        let of = self.value(of, scope)?;
        let arguments = functions::unnamed(self.arguments(given, scope)?)?;
        Ok(match (&of, method, arguments.as_slice()) {
            (CheckValue::Dict(_), ValueMethod::Keys, []) => CheckValue::List(self.items(&of)?.into()),
            (CheckValue::Dict(pairs), ValueMethod::Values, []) => {
                CheckValue::List(pairs.iter().map(|(_, item)| item.clone()).collect())
            }
            (CheckValue::Dict(pairs), ValueMethod::Items, []) => {
                let pair = |(key, item): &(CheckValue<'e>, CheckValue<'e>)| {
                    CheckValue::Tuple([key.clone(), item.clone()].into())
                };
                CheckValue::List(pairs.iter().map(pair).collect())
            }
            (CheckValue::Dict(pairs), ValueMethod::Get, [key, otherwise @ ..]) if otherwise.len() < 2 => {
                let found = at_key(self, pairs, key)?.cloned();
                found.or_else(|| otherwise.first().cloned()).unwrap_or(CheckValue::None)
            }
            (CheckValue::Text(text), ValueMethod::Format, values) => format::by_braces(self, text, values)?,
            (CheckValue::Text(text), ValueMethod::StartsWith, [CheckValue::Text(part)]) => {
                CheckValue::Bool(text.starts_with(&**part))
            }
            (CheckValue::Text(text), ValueMethod::EndsWith, [CheckValue::Text(part)]) => {
                CheckValue::Bool(text.ends_with(&**part))
            }
            (CheckValue::Text(text), ValueMethod::Split, [CheckValue::Text(part)]) if !part.is_empty() => {
                self.spend(text.len())?;
                CheckValue::List(text.split(&**part).map(CheckValue::text).collect())
            }
            (CheckValue::List(items) | CheckValue::Tuple(items), ValueMethod::Index, [wanted]) => {
                for (index, item) in (0_i64..).zip(items.iter()) {
                    if equal(self, item, wanted, 0)? {
                        return Ok(CheckValue::Int(index));
                    }
                }
                return Err(wrong("the list has no such item; test it with in first").into());
            }
            _ => return Err(wrong(format!("{} has no such method with these arguments", of.sort())).into()),
        })
    }

    fn at_index(&mut self, of: &'e ExprNode, index: &'e ExprNode, scope: &Scope<'e>) -> Answer<'e> {
        let (of, index) = (self.value(of, scope)?, self.value(index, scope)?);
        if let CheckValue::Dict(pairs) = &of {
            let found = at_key(self, pairs, &index)?.cloned();
            return found.ok_or_else(|| wrong("the dictionary has no such key; use get").into());
        }
        let (Some(items), CheckValue::Int(index)) = (of.items(), &index) else {
            return Err(wrong(format!("{} has no item at an index of type {}", of.sort(), index.sort())).into());
        };
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let place = if *index < 0 { index.saturating_add(count) } else { *index };
        let found = usize::try_from(place).ok().and_then(|place| items.get(place));
        found.cloned().ok_or_else(|| wrong(format!("there is no item {index} of {count}; they count from 0")).into())
    }

    fn slice(&mut self, of: &'e ExprNode, parts: &'e [Option<ExprNode>; 3], scope: &Scope<'e>) -> Answer<'e> {
        let of = self.value(of, scope)?;
        let mut given = [None; 3];
        for (given, part) in given.iter_mut().zip(parts) {
            let Some(part) = part else { continue };
            match self.value(part, scope)? {
                CheckValue::Int(number) => *given = Some(number),
                CheckValue::None => {}
                other => return Err(wrong(format!("a part of a list is named by int, not {}", other.sort())).into()),
            }
        }
        let Some(items) = of.items() else {
            return Err(wrong(format!("{} has no parts; name a list", of.sort())).into());
        };
        self.spend(items.len())?;
        let chosen: Rc<[CheckValue<'e>]> =
            places(items.len(), given)?.into_iter().map(|place| items[place].clone()).collect();
        Ok(if matches!(of, CheckValue::List(_)) { CheckValue::List(chosen) } else { CheckValue::Tuple(chosen) })
    }
}

type Round<'a, 'e> = dyn for<'x, 'm, 's> FnMut(&'x mut Walk<'e, 'm>, &'s Scope<'e>) -> Result<(), EvaluationStop> + 'a;

fn bound<'e>(name: &'e str, value: CheckValue<'e>, outer: Scope<'e>) -> Scope<'e> {
    Some(Rc::new(Variable { name, value, outer }))
}

fn negative<'e>(value: &CheckValue<'e>) -> Result<CheckValue<'e>, CheckError> {
    match value {
        CheckValue::Int(number) => {
            number.checked_neg().map(CheckValue::Int).ok_or_else(|| wrong("the result is too large for a whole number"))
        }
        CheckValue::Float(number) => finite(-number),
        other => Err(wrong(format!("{} has no sign", other.sort()))),
    }
}

/// The places of a slice of `count` items, by its begin, end and step.
fn places(count: usize, [begin, end, step]: [Option<i64>; 3]) -> Result<Vec<usize>, CheckError> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(wrong("a part of a list goes on by nothing; take a step other than 0"));
    }
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let (least, most) = if step > 0 { (0, count) } else { (-1, count - 1) };
    let clamped = |place: i64| (if place < 0 { place.saturating_add(count) } else { place }).clamp(least, most);
    let (first, last) = if step > 0 { (least, most) } else { (most, least) };
    let (mut place, end) = (begin.map_or(first, clamped), end.map_or(last, clamped));
    let mut places = Vec::new();
    while (step > 0 && place < end) || (step < 0 && place > end) {
        places.extend(usize::try_from(place));
        place = place.saturating_add(step);
    }
    Ok(places)
}
