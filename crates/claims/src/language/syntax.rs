//! Translation of the text of a check to an expression that may be run.
//!
//! The result must never have an unknown name, a statement, or an unbounded nesting of loops.

use super::{guard, helpers, names};
use crate::axes::Axis;
use crate::metric::Metric;
use crate::subject::clip;
use starlark::syntax::ast::{ArgumentP, AstExpr, AstLiteral, AstStmt, ClauseP, ExprP, StmtP};
use starlark::syntax::{AstModule, Dialect, DialectTypes};
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// Limit of the length of a check.
pub const CHECK_BYTES_MAX: usize = 8 << 10;
/// Limit of the nesting of brackets.
const BRACKETS_MAX: usize = 64;
/// Limit of the loops (`for` of comprehensions) in a check, nested or not.
const LOOPS_MAX: usize = 24;
/// Permitted methods of dictionaries and texts.
const METHODS: &[&str] = &["keys", "values", "items", "get", "format", "startswith", "endswith", "split", "index"];

/// The reason for which a text is not a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CheckError {
    /// The text is longer than [`CHECK_BYTES_MAX`].
    TooLong(usize),
    /// Brackets or loops are nested too deeply.
    TooDeep,
    /// Starlark cannot parse the text.
    Syntax(String),
    /// The text is not a single expression.
    NoExpression,
    /// An unknown name.
    Name {
        /// The name.
        name: String,
        /// A similar known name.
        near: Option<String>,
    },
    /// A metric has no such axis.
    NoAxis {
        /// The metric.
        metric: &'static str,
        /// The name of the axis.
        axis: String,
    },
    /// A feature of Starlark that checks do not have.
    NotOfTheLanguage(String),
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(bytes) => {
                write!(f, "the check has {bytes} bytes, at most {CHECK_BYTES_MAX}; make it shorter")
            }
            Self::TooDeep => write!(
                f,
                "the check is nested too deeply; at most {BRACKETS_MAX} brackets in each other and {LOOPS_MAX} loops"
            ),
            Self::Syntax(text) => write!(f, "this is not a Starlark expression: {text}"),
            Self::NoExpression => write!(f, "a check is one expression, without statements or assignments"),
            Self::Name { name, near: Some(near) } => write!(f, "nothing is called '{name}'; is '{near}' meant?"),
            Self::Name { name, near: None } => write!(f, "nothing is called '{name}'"),
            Self::NoAxis { metric, axis } => {
                let own = Metric::ALL.into_iter().find(|own| own.name() == *metric);
                let taken = Axis::ALL.into_iter().filter(|axis| own.is_none_or(|own| own.takes(*axis)));
                let axes = taken.map(Axis::name).collect::<Vec<_>>().join(", ");
                write!(f, "{metric} has no axis '{axis}'; known are {axes}")
            }
            Self::NotOfTheLanguage(what) => write!(f, "{what} is not part of the check language"),
        }
    }
}

impl std::error::Error for CheckError {}

/// A check that may be run.
pub struct Prepared {
    /// The expression, with guarded operators.
    pub module: AstModule,
    /// Bare names of arrays and drives in the expression.
    pub subjects: BTreeSet<String>,
}

/// Expressions only. Functions have no name, so they cannot call themselves.
const DIALECT: Dialect = Dialect {
    enable_def: false,
    enable_lambda: true,
    enable_load: false,
    enable_keyword_only_arguments: false,
    enable_positional_only_arguments: false,
    enable_types: DialectTypes::Disable,
    enable_load_reexport: false,
    enable_top_level_stmt: false,
    enable_f_strings: false,
    _non_exhaustive: (),
};

/// Read a check.
///
/// # Errors
/// The text is not a check.
pub fn prepare(check: &str) -> Result<Prepared, CheckError> {
    if check.len() > CHECK_BYTES_MAX {
        return Err(CheckError::TooLong(check.len()));
    }
    if bracket_depth(check) > BRACKETS_MAX {
        return Err(CheckError::TooDeep);
    }
    // A check may have several lines.
    let line = check.replace(['\n', '\r', '\t'], " ");
    let parse = |text: String| AstModule::parse("check", text, &DIALECT);
    let mut module =
        parse(line.trim().to_owned()).map_err(|error| CheckError::Syntax(first_line(&error.to_string())))?;
    let mut walk = Walk::default();
    walk.check(expression(module.statement()).ok_or(CheckError::NoExpression)?)?;
    let replaced: HashMap<String, String> =
        guard::OPERATORS.iter().map(|(operator, function)| ((*operator).into(), (*function).into())).collect();
    module.replace_binary_operators(&replaced);
    Ok(Prepared { module, subjects: walk.subjects })
}

/// The one expression of a module.
fn expression(statement: &AstStmt) -> Option<&AstExpr> {
    match &statement.node {
        StmtP::Expression(expression) => Some(expression),
        StmtP::Statements(statements) if statements.len() == 1 => expression(&statements[0]),
        _ => None,
    }
}

/// The depth of nested brackets, including those in texts.
fn bracket_depth(text: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// Limit of the letters of a message: enough for the reason and its remedy.
const MESSAGE_MAX: usize = 400;

/// The part of Starlark's message that names the error.
pub fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.trim().trim_start_matches("error: ").chars().take(MESSAGE_MAX).collect()
}

#[derive(Default)]
struct Walk {
    /// Variables of comprehensions and functions. A variable counts as known everywhere in the check. The compiler of
    /// the check finds a use outside of its loop.
    bound: BTreeSet<String>,
    subjects: BTreeSet<String>,
    loops: usize,
}

impl Walk {
    fn check(&mut self, expression: &AstExpr) -> Result<(), CheckError> {
        self.bind(expression)?;
        self.names(expression)
    }

    /// Collect variables and count loops. A function counts as a loop, because it may be called repeatedly.
    fn bind(&mut self, expression: &AstExpr) -> Result<(), CheckError> {
        if let ExprP::ListComprehension(_, first, clauses) | ExprP::DictComprehension(_, first, clauses) =
            &expression.node
        {
            let more = clauses.iter().filter_map(|clause| match clause {
                ClauseP::For(inner) => Some(inner),
                ClauseP::If(_) => None,
            });
            for clause in std::iter::once(&**first).chain(more) {
                self.loops += 1;
                clause.var.visit_lvalue(|name| {
                    self.bound.insert(name.node.ident.clone());
                });
            }
        }
        if let ExprP::Lambda(function) = &expression.node {
            self.loops += 1;
            let names = function.params.iter().filter_map(|parameter| parameter.node.ident());
            self.bound.extend(names.map(|name| name.node.ident.clone()));
        }
        if self.loops > LOOPS_MAX {
            return Err(CheckError::TooDeep);
        }
        let mut outcome = Ok(());
        expression.visit_expr(|inner| {
            if outcome.is_ok() {
                outcome = self.bind(inner);
            }
        });
        outcome
    }

    fn names(&mut self, expression: &AstExpr) -> Result<(), CheckError> {
        match &expression.node {
            ExprP::Identifier(name) => self.name(&name.node.ident)?,
            ExprP::Dot(_, method) if !METHODS.contains(&method.node.as_str()) => {
                return Err(CheckError::NotOfTheLanguage(format!("the method '{}'", clip(&method.node))));
            }
            ExprP::FString(_) => {
                return Err(CheckError::NotOfTheLanguage("a formatted text".into()));
            }
            ExprP::Literal(AstLiteral::Ellipsis | AstLiteral::Bytes(_)) => {
                return Err(CheckError::NotOfTheLanguage("a literal of bytes or dots".into()));
            }
            ExprP::Call(function, arguments) => {
                if let ExprP::Identifier(name) = &function.node {
                    let named = arguments.args.iter().filter_map(|argument| match &argument.node {
                        ArgumentP::Named(axis, _) => Some(axis.node.as_str()),
                        _ => None,
                    });
                    axes(&name.node.ident, named)?;
                }
                if arguments
                    .args
                    .iter()
                    .any(|argument| matches!(argument.node, ArgumentP::Args(_) | ArgumentP::KwArgs(_)))
                {
                    return Err(CheckError::NotOfTheLanguage("a list of arguments (*, **)".into()));
                }
            }
            _ => {}
        }
        let mut outcome = Ok(());
        expression.visit_expr(|inner| {
            if outcome.is_ok() {
                outcome = self.names(inner);
            }
        });
        outcome
    }

    fn name(&mut self, name: &str) -> Result<(), CheckError> {
        if self.bound.contains(name) || is_known(name) {
            return Ok(());
        }
        if names::subject(name).is_some() || names::is_level(name) {
            self.subjects.insert(name.to_owned());
            return Ok(());
        }
        let near = names::all().into_iter().map(|known| (distance(name, &known), known)).min();
        let near = near.filter(|(distance, _)| *distance <= 2).map(|(_, known)| known);
        Err(CheckError::Name { name: clip(name), near })
    }
}

fn is_known(name: &str) -> bool {
    names::is_constant(name)
        || names::STARLARK.contains(&name)
        || helpers::NAMES.contains(&name)
        || Metric::ALL.iter().any(|metric| metric.name() == name)
}

/// Check that the names are axes, if the function is a metric.
fn axes<'a>(function: &str, mut named: impl Iterator<Item = &'a str>) -> Result<(), CheckError> {
    let Some(metric) = Metric::ALL.into_iter().find(|metric| metric.name() == function) else { return Ok(()) };
    let means_something =
        |name: &&str| *name == metric.first() || Axis::of(name).is_some_and(|axis| metric.takes(axis));
    match named.find(|name| !means_something(name)) {
        Some(axis) => Err(CheckError::NoAxis { metric: metric.name(), axis: clip(axis) }),
        None => Ok(()),
    }
}

/// Number of letters that must be changed, added or removed (Levenshtein), for names of at most [`NAME_MAX`] letters.
fn distance(one: &str, other: &str) -> usize {
    const NAME_MAX: usize = 40;
    if one.len() > NAME_MAX {
        return usize::MAX;
    }
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, wanted) in other.iter().enumerate() {
            let change = diagonal + usize::from(letter != *wanted);
            diagonal = row[column + 1];
            row[column + 1] = change.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
