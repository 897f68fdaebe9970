//! Translation of the text of a check to an expression: a part of Python's expressions, by recursive descent.
//!
//! ```text
//!  expression  lambda NAMES: expression  |  or [if or else expression]
//!  or, and     joined parts; not, comparison (one), shift, sum, product: rising binding
//!  value       [-+] atom, then any of (arguments) [index] [from:to:step] .method(arguments)
//!  atom        name, number, text, (expression), (tuple,), [list], [item for ... if ...], {key: value}
//! ```
//!
//! The result must never be nested deeper than [`DEPTH_MAX`], because its evaluation descends into it.

use super::token::{tokens, CheckToken};
use super::value::CheckValue;
use super::{wrong, CheckError};
use crate::subject::clip;

/// Limit of the length of a check.
pub const CHECK_BYTES_MAX: usize = 8 << 10;
/// Limit of the nesting of expressions.
pub const DEPTH_MAX: usize = 64;
/// Limit of the loops (`for` of comprehensions, and functions) in a check, nested or not.
const LOOPS_MAX: usize = 24;
/// Words that are no names.
const KEYWORDS: [&str; 8] = ["and", "or", "not", "in", "if", "else", "for", "lambda"];

/// An expression with its place: characters of the check that precede it.
#[derive(Clone, PartialEq, Debug)]
pub struct ExprNode {
    pub at: usize,
    /// The expression.
    pub expr: Expr,
}

/// An operator between two values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// Division, rounded down.
    Floor,
    Remainder,
    ShiftLeft,
    ShiftRight,
}

/// A comparison of two values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompareOperator {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    In,
    NotIn,
}

/// A method of a text, list or dictionary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueMethod {
    Keys,
    Values,
    Items,
    Get,
    Format,
    StartsWith,
    EndsWith,
    Split,
    Index,
}

/// All methods by their names.
const METHODS: [(&str, ValueMethod); 9] = [
    ("keys", ValueMethod::Keys),
    ("values", ValueMethod::Values),
    ("items", ValueMethod::Items),
    ("get", ValueMethod::Get),
    ("format", ValueMethod::Format),
    ("startswith", ValueMethod::StartsWith),
    ("endswith", ValueMethod::EndsWith),
    ("split", ValueMethod::Split),
    ("index", ValueMethod::Index),
];

/// An argument of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Argument {
    /// Its name, if one is given.
    pub name: Option<String>,
    pub value: ExprNode,
}

/// A part of a comprehension.
#[derive(Clone, PartialEq, Debug)]
pub enum Clause {
    /// `for names in items`.
    For(Vec<String>, ExprNode),
    /// `if condition`.
    If(ExprNode),
}

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    Literal(CheckValue<'static>),
    Name(String),
    List(Vec<ExprNode>),
    Tuple(Vec<ExprNode>),
    Dict(Vec<(ExprNode, ExprNode)>),
    /// A list, or a dictionary if there is a key.
    Comprehension {
        key: Option<Box<ExprNode>>,
        item: Box<ExprNode>,
        clauses: Vec<Clause>,
    },
    /// `not`, possibly repeated: whether the truth is the opposite.
    Not(bool, Box<ExprNode>),
    Negative(Box<ExprNode>),
    /// Operators of equal binding with their places, from left to right.
    Chain(Box<ExprNode>, Vec<(usize, Operator, ExprNode)>),
    Compare(Box<ExprNode>, CompareOperator, Box<ExprNode>),
    /// Parts joined by `and`.
    And(Vec<ExprNode>),
    /// Parts joined by `or`.
    Or(Vec<ExprNode>),
    /// `yes if condition else no`, in this order.
    Choice(Box<[ExprNode; 3]>),
    Lambda(Vec<String>, Box<ExprNode>),
    Call(Box<ExprNode>, Vec<Argument>),
    Method(Box<ExprNode>, ValueMethod, Vec<Argument>),
    Index(Box<ExprNode>, Box<ExprNode>),
    /// Begin, end and step.
    Slice(Box<ExprNode>, Box<[Option<ExprNode>; 3]>),
}

/// Operators by their binding: the first bind least.
const OPERATORS: [&[(&str, Operator)]; 3] = [
    &[("<<", Operator::ShiftLeft), (">>", Operator::ShiftRight)],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide), ("//", Operator::Floor), ("%", Operator::Remainder)],
];

const COMPARISONS: [(&str, CompareOperator); 6] = [
    ("==", CompareOperator::Equal),
    ("!=", CompareOperator::Unequal),
    ("<", CompareOperator::Less),
    ("<=", CompareOperator::AtMost),
    (">", CompareOperator::Greater),
    (">=", CompareOperator::AtLeast),
];

/// Read a check.
///
/// # Errors
/// The text is not one expression, or it exceeds a limit.
pub fn parse(check: &str) -> Result<ExprNode, CheckError> {
    if check.len() > CHECK_BYTES_MAX {
        let bytes = check.len();
        return Err(wrong(format!("the check has {bytes} bytes, at most {CHECK_BYTES_MAX}; make it shorter")));
    }
    let mut parser = Parser { tokens: tokens(check)?, next: 0, depth: 0, loops: 0 };
    let node = parser.expression()?;
    match parser.peek() {
        CheckToken::End => Ok(node),
        _ => Err(parser.unexpected("the end; a check is one expression, without statements or assignments")),
    }
}

struct Parser {
    tokens: Vec<(usize, CheckToken)>,
    next: usize,
    depth: usize,
    loops: usize,
}

type Parsed = Result<ExprNode, CheckError>;

impl Parser {
    fn peek(&self) -> &CheckToken {
        &self.tokens[self.next].1
    }

    fn at(&self) -> usize {
        self.tokens[self.next].0
    }

    /// Take a sign or a keyword, if it is the next token.
    fn take(&mut self, wanted: &str) -> bool {
        let is_next = match self.peek() {
            CheckToken::Word(word) => word == wanted && KEYWORDS.contains(&wanted),
            CheckToken::Sign(sign) => *sign == wanted,
            _ => false,
        };
        self.next += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, wanted: &str) -> Result<(), CheckError> {
        if self.take(wanted) {
            return Ok(());
        }
        Err(self.unexpected(&format!("'{wanted}'")))
    }

    fn unexpected(&self, wanted: &str) -> CheckError {
        let found = match self.peek() {
            CheckToken::Word(word) => format!("'{}'", clip(word)),
            CheckToken::Sign(sign) => format!("'{sign}'"),
            CheckToken::Int(_) | CheckToken::Float(_) => "a number".into(),
            CheckToken::Text(text) => format!("the text '{}'", clip(text)),
            CheckToken::End => "the end of the check".into(),
        };
        wrong(format!("this is not an expression: {found} stands in the place of {wanted}")).or_at(self.at())
    }

    /// Count one loop or function more.
    fn enter_loop(&mut self) -> Result<(), CheckError> {
        self.loops += 1;
        if self.loops > LOOPS_MAX {
            let text = format!("a check has at most {LOOPS_MAX} loops and functions; divide it into several claims");
            return Err(wrong(text).or_at(self.at()));
        }
        Ok(())
    }

    fn expression(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(too_deep().or_at(self.at()));
        }
        let node = if self.take("lambda") { self.lambda() } else { self.choice() };
        self.depth -= 1;
        node
    }

    fn lambda(&mut self) -> Parsed {
        let at = self.at();
        self.enter_loop()?;
        let mut names = Vec::new();
        while !self.take(":") {
            if !names.is_empty() {
                self.expect(",")?;
            }
            names.push(self.name()?);
        }
        let body = self.expression()?;
        Ok(ExprNode { at, expr: Expr::Lambda(names, Box::new(body)) })
    }

    fn choice(&mut self) -> Parsed {
        let at = self.at();
        let yes = self.or()?;
        if !self.take("if") {
            return Ok(yes);
        }
        let condition = self.or()?;
        self.expect("else")?;
        let no = self.expression()?;
        Ok(ExprNode { at, expr: Expr::Choice(Box::new([yes, condition, no])) })
    }

    fn or(&mut self) -> Parsed {
        self.joined("or", Self::and, Expr::Or)
    }

    fn and(&mut self) -> Parsed {
        self.joined("and", Self::not, Expr::And)
    }

    fn joined(&mut self, word: &str, part: fn(&mut Self) -> Parsed, join: fn(Vec<ExprNode>) -> Expr) -> Parsed {
        let at = self.at();
        let first = part(self)?;
        if !self.take(word) {
            return Ok(first);
        }
        let mut parts = vec![first, part(self)?];
        while self.take(word) {
            parts.push(part(self)?);
        }
        Ok(ExprNode { at, expr: join(parts) })
    }

    fn not(&mut self) -> Parsed {
        let at = self.at();
        let mut count = 0;
        while self.take("not") {
            count += 1;
        }
        let node = self.comparison()?;
        Ok(if count == 0 { node } else { ExprNode { at, expr: Expr::Not(count % 2 == 1, Box::new(node)) } })
    }

    fn comparison(&mut self) -> Parsed {
        let left = self.chain(0)?;
        let at = self.at();
        let Some(comparison) = self.compared()? else { return Ok(left) };
        let right = self.chain(0)?;
        if self.compared()?.is_some() {
            return Err(wrong("two comparisons in a row; join them with and: a < b and b < c").or_at(at));
        }
        Ok(ExprNode { at, expr: Expr::Compare(Box::new(left), comparison, Box::new(right)) })
    }

    fn compared(&mut self) -> Result<Option<CompareOperator>, CheckError> {
        if self.take("not") {
            return self.expect("in").map(|()| Some(CompareOperator::NotIn));
        }
        if self.take("in") {
            return Ok(Some(CompareOperator::In));
        }
        Ok(COMPARISONS.iter().find(|(sign, _)| self.take(sign)).map(|(_, comparison)| *comparison))
    }

    fn chain(&mut self, binding: usize) -> Parsed {
        let Some(operators) = OPERATORS.get(binding) else { return self.negative() };
        let at = self.at();
        let first = self.chain(binding + 1)?;
        let mut others = Vec::new();
        loop {
            let place = self.at();
            let Some((_, operator)) = operators.iter().find(|(sign, _)| self.take(sign)) else { break };
            others.push((place, *operator, self.chain(binding + 1)?));
        }
        Ok(if others.is_empty() { first } else { ExprNode { at, expr: Expr::Chain(Box::new(first), others) } })
    }

    fn negative(&mut self) -> Parsed {
        let at = self.at();
        let mut is_negative = false;
        let mut is_signed = false;
        loop {
            if self.take("-") {
                (is_negative, is_signed) = (!is_negative, true);
            } else if self.take("+") {
                is_signed = true;
            } else {
                break;
            }
        }
        let value = self.value()?;
        if !is_signed {
            return Ok(value);
        }
        // A sign is for numbers only, also if two of them cancel out.
        let negative = ExprNode { at, expr: Expr::Negative(Box::new(value)) };
        Ok(if is_negative { negative } else { ExprNode { at, expr: Expr::Negative(Box::new(negative)) } })
    }

    /// An atom with its calls, indices and methods.
    fn value(&mut self) -> Parsed {
        let mut node = self.atom()?;
        for _ in 0..DEPTH_MAX {
            let (start, at) = (node.at, self.at());
            node = if self.take("(") {
                // A call is at the place of its function.
                ExprNode { at: start, expr: Expr::Call(Box::new(node), self.arguments()?) }
            } else if self.take("[") {
                ExprNode { at, expr: self.index(Box::new(node))? }
            } else if self.take(".") {
                let name = self.name()?;
                let Some((_, method)) = METHODS.iter().find(|(known, _)| *known == name) else {
                    let known = METHODS.map(|(name, _)| name).join(", ");
                    let text = format!("the check language has no method '{}'; known are {known}", clip(&name));
                    return Err(wrong(text).or_at(at));
                };
                self.expect("(")?;
                ExprNode { at, expr: Expr::Method(Box::new(node), *method, self.arguments()?) }
            } else {
                return Ok(node);
            };
        }
        Err(too_deep().or_at(self.at()))
    }

    fn atom(&mut self) -> Parsed {
        let at = self.at();
        if self.take("(") {
            return self.bracket(at);
        }
        if self.take("[") {
            return self.list(at);
        }
        if self.take("{") {
            return self.dict(at);
        }
        let literal = match self.peek() {
            CheckToken::Int(number) => CheckValue::Int(*number),
            CheckToken::Float(number) => CheckValue::Float(*number),
            CheckToken::Text(text) => CheckValue::Text(text.as_str().into()),
            CheckToken::Word(word) if word == "True" || word == "False" => CheckValue::Bool(word == "True"),
            CheckToken::Word(word) if word == "None" => CheckValue::None,
            CheckToken::Word(_) => return Ok(ExprNode { at, expr: Expr::Name(self.name()?) }),
            _ => return Err(self.unexpected("a value")),
        };
        self.next += 1;
        Ok(ExprNode { at, expr: Expr::Literal(literal) })
    }

    fn name(&mut self) -> Result<String, CheckError> {
        match self.peek() {
            CheckToken::Word(word) if !KEYWORDS.contains(&word.as_str()) => {
                let word = word.clone();
                self.next += 1;
                Ok(word)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// The part of brackets that begin at `at`: an expression, or a tuple.
    fn bracket(&mut self, at: usize) -> Parsed {
        if self.take(")") {
            return Ok(ExprNode { at, expr: Expr::Tuple(Vec::new()) });
        }
        let first = self.expression()?;
        if self.take(")") {
            return Ok(first);
        }
        self.expect(",")?;
        let items = self.items(vec![first], ")")?;
        Ok(ExprNode { at, expr: Expr::Tuple(items) })
    }

    /// Items up to the closing sign, each followed by a comma, except possibly the last.
    fn items(&mut self, mut items: Vec<ExprNode>, close: &str) -> Result<Vec<ExprNode>, CheckError> {
        while !self.take(close) {
            items.push(self.expression()?);
            if !self.take(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(items)
    }

    fn list(&mut self, at: usize) -> Parsed {
        if self.take("]") {
            return Ok(ExprNode { at, expr: Expr::List(Vec::new()) });
        }
        let item = self.expression()?;
        if let Some(clauses) = self.clauses()? {
            self.expect("]")?;
            return Ok(ExprNode { at, expr: Expr::Comprehension { key: None, item: Box::new(item), clauses } });
        }
        if !self.take(",") {
            self.expect("]")?;
            return Ok(ExprNode { at, expr: Expr::List(vec![item]) });
        }
        let items = self.items(vec![item], "]")?;
        Ok(ExprNode { at, expr: Expr::List(items) })
    }

    fn dict(&mut self, at: usize) -> Parsed {
        let mut pairs = Vec::new();
        while !self.take("}") {
            let key = self.expression()?;
            self.expect(":")?;
            let item = self.expression()?;
            if pairs.is_empty() {
                if let Some(clauses) = self.clauses()? {
                    self.expect("}")?;
                    let (key, item) = (Some(Box::new(key)), Box::new(item));
                    return Ok(ExprNode { at, expr: Expr::Comprehension { key, item, clauses } });
                }
            }
            pairs.push((key, item));
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(ExprNode { at, expr: Expr::Dict(pairs) })
    }

    /// The loops and conditions of a comprehension; `None` if this is none.
    fn clauses(&mut self) -> Result<Option<Vec<Clause>>, CheckError> {
        let mut clauses = Vec::new();
        loop {
            if self.take("for") {
                self.enter_loop()?;
                let names = self.names()?;
                self.expect("in")?;
                clauses.push(Clause::For(names, self.or()?));
            } else if !clauses.is_empty() && self.take("if") {
                clauses.push(Clause::If(self.or()?));
            } else {
                return Ok((!clauses.is_empty()).then_some(clauses));
            }
        }
    }

    /// One name, or several with commas, with or without brackets.
    fn names(&mut self) -> Result<Vec<String>, CheckError> {
        let in_brackets = self.take("(");
        let mut names = vec![self.name()?];
        while self.take(",") {
            names.push(self.name()?);
        }
        if in_brackets {
            self.expect(")")?;
        }
        Ok(names)
    }

    fn arguments(&mut self) -> Result<Vec<Argument>, CheckError> {
        let mut arguments: Vec<Argument> = Vec::new();
        while !self.take(")") {
            let is_named = matches!(self.tokens.get(self.next + 1), Some((_, CheckToken::Sign("="))));
            let name = if is_named { Some(self.name()?) } else { None };
            if is_named {
                self.expect("=")?;
            } else if arguments.last().is_some_and(|argument| argument.name.is_some()) {
                return Err(
                    wrong("an argument without a name follows one with a name; give it a name").or_at(self.at())
                );
            }
            let value = self.expression()?;
            if name.is_some() && arguments.iter().any(|argument| argument.name == name) {
                return Err(wrong("an argument is given twice; leave one out").or_at(value.at));
            }
            arguments.push(Argument { name, value });
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(arguments)
    }

    fn index(&mut self, of: Box<ExprNode>) -> Result<Expr, CheckError> {
        let mut parts = [None, None, None];
        let mut count = 0;
        loop {
            if !matches!(self.peek(), CheckToken::Sign(":" | "]")) {
                parts[count] = Some(self.expression()?);
            }
            if self.take("]") {
                break;
            }
            count += 1;
            if count == parts.len() {
                return Err(self.unexpected("']'"));
            }
            self.expect(":")?;
        }
        match (count, &mut parts) {
            (0, [Some(_), ..]) => {
                let [index, ..] = parts;
                Ok(Expr::Index(of, Box::new(index.unwrap_or_else(|| panic!("bug: an index that was read")))))
            }
            (0, _) => Err(self.unexpected("an index")),
            _ => Ok(Expr::Slice(of, Box::new(parts))),
        }
    }
}

fn too_deep() -> CheckError {
    wrong(format!("expressions are nested more than {DEPTH_MAX} deep; divide the check into several claims"))
}
