//! Sessions and one-time links. They are in memory: when the server ends, they end.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::role::Role;
use super::token::{is_same, secret};
use crate::limits::{
    ADDRESSES_MAX, LINKS_MAX, LINK_TIME_MAX, SESSIONS_MAX, SESSION_IDLE_MAX, SESSION_TIME_MAX, WRONG_PASSWORDS_MAX,
    WRONG_PASSWORD_WAIT,
};

/// A session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// Its number; it is no secret.
    pub number: u64,
    /// The user's name.
    pub user: String,
    /// The user's role.
    pub role: Role,
    /// It began with a one-time link.
    pub by_link: bool,
    /// Seconds since 1970 at its beginning.
    pub since_seconds: u64,
    secret: String,
    begun: Instant,
    used: Instant,
}

#[derive(Debug, Default)]
struct Table {
    sessions: Vec<Session>,
    links: Vec<(String, Role, Instant)>,
    wrong: HashMap<IpAddr, (u32, Instant)>,
    /// Names and passwords as basic authentication writes them, and the sessions that they have.
    basics: Vec<(String, String)>,
    last: u64,
}

/// All sessions.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<Table>);

impl Sessions {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begin a session. Returns its secret and its public part.
    pub fn begin(&self, user: &str, role: Role, by_link: bool) -> (String, Session) {
        let mut table = self.table();
        clear(&mut table);
        if table.sessions.len() >= SESSIONS_MAX {
            let idle = table.sessions.iter().enumerate().min_by_key(|(_, session)| session.used).map(|(nth, _)| nth);
            idle.map(|nth| table.sessions.remove(nth));
        }
        table.last += 1;
        let (secret, now) = (secret(), Instant::now());
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let session = Session {
            number: table.last,
            user: user.into(),
            role,
            by_link,
            since_seconds: since.as_secs(),
            secret: secret.clone(),
            begun: now,
            used: now,
        };
        table.sessions.push(session.clone());
        (secret, session)
    }

    /// The session with this secret, which is used by that.
    pub fn find(&self, secret: &str) -> Option<Session> {
        let mut table = self.table();
        clear(&mut table);
        let found = table.sessions.iter_mut().find(|session| is_same(&session.secret, secret))?;
        found.used = Instant::now();
        Some(found.clone())
    }

    /// The session that these words of basic authentication have.
    pub fn of_basic(&self, words: &str) -> Option<Session> {
        let secret = self.table().basics.iter().find(|(own, _)| is_same(own, words)).map(|(_, secret)| secret.clone());
        self.find(&secret?)
    }

    /// Begin a session for words of basic authentication, which fit.
    pub fn begin_basic(&self, words: &str, user: &str, role: Role) -> Session {
        let (secret, session) = self.begin(user, role, false);
        let mut table = self.table();
        let table = &mut *table;
        table.basics.retain(|(own, secret)| own != words && table.sessions.iter().any(|one| one.secret == *secret));
        table.basics.push((words.into(), secret));
        session
    }

    /// All of them, for an administrator.
    pub fn all(&self) -> Vec<Session> {
        let mut table = self.table();
        clear(&mut table);
        table.sessions.clone()
    }

    /// End a session; true if there was one.
    pub fn end(&self, number: u64) -> bool {
        let mut table = self.table();
        let before = table.sessions.len();
        table.sessions.retain(|session| session.number != number);
        table.sessions.len() < before
    }

    /// End all sessions of a user: the password, the role or the user has changed.
    pub fn end_all_of(&self, user: &str) {
        self.table().sessions.retain(|session| session.user != user || session.by_link);
    }

    /// The secret of a new one-time link.
    pub fn link(&self, role: Role) -> String {
        let mut table = self.table();
        clear(&mut table);
        if table.links.len() >= LINKS_MAX {
            table.links.remove(0);
        }
        let secret = secret();
        table.links.push((secret.clone(), role, Instant::now()));
        secret
    }

    /// Use a one-time link up.
    pub fn take_link(&self, secret: &str) -> Option<Role> {
        let mut table = self.table();
        clear(&mut table);
        let nth = table.links.iter().position(|(own, ..)| is_same(own, secret))?;
        Some(table.links.remove(nth).1)
    }

    /// May this address try a password?
    pub fn may_try(&self, address: IpAddr) -> bool {
        let table = self.table();
        let wrong = table.wrong.get(&address);
        wrong.is_none_or(|(count, last)| *count < WRONG_PASSWORDS_MAX || last.elapsed() >= WRONG_PASSWORD_WAIT)
    }

    /// A password of this address was wrong, or right.
    pub fn tried(&self, address: IpAddr, right: bool) {
        let mut table = self.table();
        if right {
            table.wrong.remove(&address);
            return;
        }
        table.wrong.retain(|_, (_, last)| last.elapsed() < WRONG_PASSWORD_WAIT);
        if table.wrong.len() < ADDRESSES_MAX || table.wrong.contains_key(&address) {
            let entry = table.wrong.entry(address).or_insert((0, Instant::now()));
            *entry = (entry.0 + 1, Instant::now());
        }
    }
}

fn clear(table: &mut Table) {
    table.sessions.retain(|own| own.begun.elapsed() < SESSION_TIME_MAX && own.used.elapsed() < SESSION_IDLE_MAX);
    table.links.retain(|(_, _, made)| made.elapsed() < LINK_TIME_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moment that was `time` ago.
    fn ago(time: Duration) -> Instant {
        Instant::now().checked_sub(time).expect("the clock goes back that far")
    }

    #[test]
    fn a_session_ends_when_it_is_not_used_and_after_its_time() {
        let sessions = Sessions::default();
        let (secret, _) = sessions.begin("ann", Role::Operator, false);
        assert!(sessions.find(&secret).is_some() && sessions.find(&secret[1..]).is_none());
        sessions.table().sessions[0].used = ago(SESSION_IDLE_MAX - Duration::from_secs(5));
        assert!(sessions.find(&secret).is_some(), "and that was a use");
        sessions.table().sessions[0].begun = ago(SESSION_TIME_MAX - Duration::from_secs(5));
        assert!(sessions.find(&secret).is_some());
        sessions.table().sessions[0].begun = ago(SESSION_TIME_MAX);
        assert!(sessions.find(&secret).is_none() && sessions.all().is_empty(), "its time is over");
        let (secret, _) = sessions.begin("ann", Role::Operator, false);
        sessions.table().sessions[0].used = ago(SESSION_IDLE_MAX);
        assert!(sessions.find(&secret).is_none(), "it was not used");
        // A session of basic authentication ends as well, and the next request has to bring its password again.
        sessions.begin_basic("words", "ann", Role::Operator);
        assert!(sessions.of_basic("words").is_some());
        sessions.end_all_of("ann");
        assert!(sessions.of_basic("words").is_none());
    }

    #[test]
    fn a_link_is_used_once_and_not_after_its_time_and_wrong_passwords_wait() {
        let sessions = Sessions::default();
        let link = sessions.link(Role::Administrator);
        assert_eq!((sessions.take_link(&link), sessions.take_link(&link)), (Some(Role::Administrator), None));
        let late = sessions.link(Role::Administrator);
        sessions.table().links[0].2 = ago(LINK_TIME_MAX);
        assert_eq!(sessions.take_link(&late), None);
        let links: Vec<String> = (0..=LINKS_MAX).map(|_| sessions.link(Role::ReadOnly)).collect();
        assert_eq!((sessions.take_link(&links[0]), sessions.take_link(&links[1])), (None, Some(Role::ReadOnly)));
        let address = IpAddr::from([10, 0, 0, 1]);
        (0..WRONG_PASSWORDS_MAX).for_each(|_| sessions.tried(address, false));
        assert!(!sessions.may_try(address) && sessions.may_try(IpAddr::from([10, 0, 0, 2])));
        sessions.table().wrong.get_mut(&address).expect("it tried").1 = ago(WRONG_PASSWORD_WAIT);
        assert!(sessions.may_try(address));
    }
}
