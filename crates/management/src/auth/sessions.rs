//! Sessions and one-time links. Sessions are also in a file, so that they outlive the server's restart; links are in memory alone.

use std::collections::hash_map::RandomState;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use openraid_status::Role;
use serde::{Deserialize, Serialize};

use super::private_file::PrivateFile;
use super::secret::{digest, is_same, secret};
use super::sign_in_turns::is_loopback;
use super::tokens::SessionToken;
use crate::limits::{
    ADDRESSES_MAX, LINKS_MAX, LINK_TIME_MAX, SESSIONS_MAX, SESSIONS_SAVE_INTERVAL, SESSION_IDLE_MAX, SESSION_TIME_MAX,
    WRONG_PASSWORDS_MAX, WRONG_PASSWORD_WAIT,
};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserSession {
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
    /// SHA-256 of the secret.
    digest: String,
    /// Its age when this server began to count.
    age: Duration,
    begun: Instant,
    used: Instant,
}

impl UserSession {
    /// The holder of a token that lasts.
    pub fn of_token(token: &SessionToken) -> Self {
        let now = Instant::now();
        Self {
            number: 0,
            user: format!("token {}", token.name),
            role: token.role,
            by_link: false,
            since_seconds: token.since_seconds,
            digest: String::new(),
            age: Duration::ZERO,
            begun: now,
            used: now,
        }
    }

    /// Was it made of this token?
    pub fn is_of_token(&self, token: &SessionToken) -> bool {
        let of_token = Self::of_token(token);
        (self.number, &self.user, self.since_seconds) == (of_token.number, &of_token.user, of_token.since_seconds)
    }

    /// Its time is over, or it was not used for too long.
    fn has_ended(&self) -> bool {
        self.age + self.begun.elapsed() >= SESSION_TIME_MAX || self.used.elapsed() >= SESSION_IDLE_MAX
    }
}

/// A session in the file.
#[derive(Serialize, Deserialize)]
struct SavedSession {
    number: u64,
    user: String,
    role: Role,
    by_link: bool,
    since_seconds: u64,
    used_seconds: u64,
    digest: String,
}

#[derive(Serialize, Deserialize)]
struct Content {
    sessions: Vec<SavedSession>,
}

/// Seconds since 1970.
pub(super) fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[derive(Debug, Default)]
struct Table {
    sessions: Vec<UserSession>,
    links: Vec<(String, Role, Instant)>,
    wrong: HashMap<(IpAddr, u8), (u32, Instant)>,
    /// Names and passwords as basic authentication writes them, and the sessions that they have.
    basics: Vec<(String, String)>,
    last: u64,
}

#[derive(Debug)]
pub struct Sessions {
    table: Mutex<Table>,
    file: PrivateFile,
    /// The moment of the last save.
    saved: Mutex<Instant>,
    names: RandomState,
}

impl Sessions {
    /// The sessions in this file. A session whose file cannot be read has ended, and so has one from the future: the clock was set
    /// back.
    pub fn at(path: PathBuf) -> Self {
        let file = PrivateFile::at(path, "sessions", "openraid/sessions/1");
        let now = clock();
        let known = file.read::<Content>().ok().flatten().map_or_else(Vec::new, |content| content.sessions);
        let sessions: Vec<UserSession> = known
            .into_iter()
            .filter_map(|saved| {
                let idle = Duration::from_secs(now.checked_sub(saved.used_seconds)?);
                let age = Duration::from_secs(now.checked_sub(saved.since_seconds)?);
                let SavedSession { number, user, role, by_link, since_seconds, digest, .. } = saved;
                let (begun, used) = (Instant::now(), Instant::now());
                let session = UserSession { number, user, role, by_link, since_seconds, digest, age, begun, used };
                Some(session).filter(|session| idle < SESSION_IDLE_MAX && !session.has_ended())
            })
            .take(SESSIONS_MAX)
            .collect();
        let last = sessions.iter().map(|session| session.number).max().unwrap_or(0);
        let table = Mutex::new(Table { sessions, last, ..Table::default() });
        Self { table, file, saved: Mutex::new(Instant::now()), names: RandomState::new() }
    }

    /// Is the last save so long ago that the idle times in the file are out of date?
    pub fn is_due(&self) -> bool {
        self.saved.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= SESSIONS_SAVE_INTERVAL
    }

    /// Write all sessions to the file. Without room for it they end with the server.
    pub fn save(&self) {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock();
        let one = |session: &UserSession| SavedSession {
            number: session.number,
            user: session.user.clone(),
            role: session.role,
            by_link: session.by_link,
            since_seconds: session.since_seconds,
            used_seconds: now.saturating_sub(session.used.elapsed().as_secs()),
            digest: session.digest.clone(),
        };
        let sessions = self.all().iter().map(one).collect();
        let _ = self.file.write(Content { sessions });
        *saved = Instant::now();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begin a session. Returns its secret and its public part.
    pub fn begin(&self, user: &str, role: Role, by_link: bool) -> (String, UserSession) {
        let mut table = self.table();
        clear(&mut table);
        if table.sessions.len() >= SESSIONS_MAX {
            let idle = table.sessions.iter().enumerate().min_by_key(|(_, session)| session.used).map(|(nth, _)| nth);
            idle.map(|nth| table.sessions.remove(nth));
        }
        table.last += 1;
        let (secret, now) = (secret(), Instant::now());
        let session = UserSession {
            number: table.last,
            user: user.into(),
            role,
            by_link,
            since_seconds: clock(),
            digest: digest(&secret),
            age: Duration::ZERO,
            begun: now,
            used: now,
        };
        table.sessions.push(session.clone());
        drop(table);
        self.save();
        (secret, session)
    }

    /// The session with this secret, which is used by that.
    pub fn find(&self, secret: &str) -> Option<UserSession> {
        let mut table = self.table();
        clear(&mut table);
        let digest = digest(secret);
        let found = table.sessions.iter_mut().find(|session| is_same(&session.digest, &digest))?;
        found.used = Instant::now();
        Some(found.clone())
    }

    /// The session that these words of basic authentication have.
    pub fn of_basic(&self, words: &str) -> Option<UserSession> {
        let secret =
            self.table().basics.iter().find(|(known, _)| is_same(known, words)).map(|(_, secret)| secret.clone());
        self.find(&secret?)
    }

    /// Begin a session for words of basic authentication, which fit.
    pub fn begin_basic(&self, words: &str, user: &str, role: Role) -> UserSession {
        let (secret, session) = self.begin(user, role, false);
        let mut table = self.table();
        let table = &mut *table;
        let is_open = |secret: &str| {
            let digest = digest(secret);
            table.sessions.iter().any(|session| session.digest == digest)
        };
        table.basics.retain(|(known, secret)| known != words && is_open(secret));
        table.basics.push((words.into(), secret));
        session
    }

    /// All of them, for an administrator.
    pub fn all(&self) -> Vec<UserSession> {
        let mut table = self.table();
        clear(&mut table);
        table.sessions.clone()
    }

    /// End a session; true if there was one.
    pub fn end(&self, number: u64) -> bool {
        let mut table = self.table();
        let before = table.sessions.len();
        table.sessions.retain(|session| session.number != number);
        let has_ended = table.sessions.len() < before;
        drop(table);
        self.save();
        has_ended
    }

    /// End all sessions of a user: the password, the role or the user has changed.
    pub fn end_all_of(&self, user: &str) {
        self.table().sessions.retain(|session| session.user != user || session.by_link);
        self.save();
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
        let nth = table.links.iter().position(|(kept, ..)| is_same(kept, secret))?;
        Some(table.links.remove(nth).1)
    }

    /// Wrong passwords are counted for an address and a user, so that a process of this machine that tries one name does not keep
    /// the other users out. Names share 64 places of an address: their number has a limit, and a known name looks like any other.
    /// The loopback is one place for all its addresses and names.
    fn place(&self, address: IpAddr, name: &str) -> (IpAddr, u8) {
        if is_loopback(address) {
            return (IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        }
        (address, (self.names.hash_one(name) % 64) as u8)
    }

    /// Do sign-ins of this address wait for their turn, after too many wrong passwords over the loopback?
    pub fn must_wait(&self, address: IpAddr) -> bool {
        is_loopback(address) && !self.has_few_wrong(address, "")
    }

    /// May this address try a password of this user? Over the loopback it always may, when its turn comes.
    pub fn may_try(&self, address: IpAddr, name: &str) -> bool {
        is_loopback(address) || self.has_few_wrong(address, name)
    }

    fn has_few_wrong(&self, address: IpAddr, name: &str) -> bool {
        let table = self.table();
        let wrong = table.wrong.get(&self.place(address, name));
        wrong.is_none_or(|(count, last)| *count < WRONG_PASSWORDS_MAX || last.elapsed() >= WRONG_PASSWORD_WAIT)
    }

    /// A password of this user from this address was wrong, or right.
    pub fn tried(&self, address: IpAddr, name: &str, right: bool) {
        let mut table = self.table();
        let place = self.place(address, name);
        if right {
            // Over the loopback it says nothing about the other processes.
            if !is_loopback(address) {
                table.wrong.remove(&place);
            }
            return;
        }
        table.wrong.retain(|_, (_, last)| last.elapsed() < WRONG_PASSWORD_WAIT);
        if table.wrong.len() < 64 * ADDRESSES_MAX || table.wrong.contains_key(&place) {
            let entry = table.wrong.entry(place).or_insert((0, Instant::now()));
            *entry = (entry.0 + 1, Instant::now());
        }
    }
}

fn clear(table: &mut Table) {
    table.sessions.retain(|session| !session.has_ended());
    table.links.retain(|(_, _, made)| made.elapsed() < LINK_TIME_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moment that was `time` ago.
    fn ago(time: Duration) -> Instant {
        Instant::now().checked_sub(time).expect("the clock goes back that far")
    }

    /// Sessions with a file of their own.
    fn sessions(name: &str) -> (Sessions, PathBuf) {
        let path = std::env::temp_dir().join(format!("openraid-sessions-{name}-{}.json", std::process::id()));
        let _ = std::fs::remove_file(&path);
        (Sessions::at(path.clone()), path)
    }

    #[test]
    fn sessions_outlive_a_restart_unless_they_were_idle_or_the_clock_was_set_back() {
        let (before, path) = sessions("restart");
        let secrets: Vec<String> = (0..4).map(|_| before.begin("ann", Role::Operator, false).0).collect();
        before.end(4);
        {
            let mut table = before.table();
            table.sessions[1].used = ago(SESSION_IDLE_MAX - Duration::from_secs(1));
            table.sessions[2].since_seconds += 60;
        }
        before.save();
        let text = std::fs::read_to_string(&path).expect("saved");
        assert!(secrets.iter().all(|secret| !text.contains(secret)), "no secret is in the file");
        std::fs::write(&path, text.replace(&format!("{}", clock() - 1799), "1")).expect("own file");
        let after = Sessions::at(path.clone());
        let known: Vec<bool> = secrets.iter().map(|secret| after.find(secret).is_some()).collect();
        assert_eq!(known, [true, false, false, false]);
        assert_eq!(
            after.begin("eve", Role::ReadOnly, false).1.number,
            2,
            "numbers of open sessions are not used again"
        );
        std::fs::write(&path, "{}").expect("own file");
        assert!(Sessions::at(path.clone()).all().is_empty());
        std::fs::remove_file(path).expect("own file");
    }

    #[test]
    fn a_session_ends_when_it_is_not_used_and_after_its_time() {
        let (sessions, path) = sessions("end");
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
        std::fs::remove_file(path).expect("own file");
    }

    #[test]
    fn over_the_loopback_all_wait_together_and_none_is_refused() {
        let (sessions, _) = sessions("loopback");
        let [first, second, third] = ["127.0.0.1", "127.0.0.2", "::1"].map(|text| text.parse().expect("an address"));
        assert!(!sessions.must_wait(first));
        for nth in 0..WRONG_PASSWORDS_MAX {
            sessions.tried(if nth % 2 == 0 { second } else { third }, &format!("user{nth}"), false);
        }
        sessions.tried(first, "ann", true);
        for address in [first, second, third] {
            assert!(sessions.must_wait(address) && sessions.may_try(address, "ann"), "{address}");
        }
        assert!(!sessions.must_wait(IpAddr::from([10, 0, 0, 1])));
    }

    #[test]
    fn a_link_is_used_once_and_not_after_its_time_and_wrong_passwords_wait() {
        let (sessions, _) = sessions("links");
        let link = sessions.link(Role::Administrator);
        assert_eq!((sessions.take_link(&link), sessions.take_link(&link)), (Some(Role::Administrator), None));
        let late = sessions.link(Role::Administrator);
        sessions.table().links[0].2 = ago(LINK_TIME_MAX);
        assert_eq!(sessions.take_link(&late), None);
        let links: Vec<String> = (0..=LINKS_MAX).map(|_| sessions.link(Role::ReadOnly)).collect();
        assert_eq!((sessions.take_link(&links[0]), sessions.take_link(&links[1])), (None, Some(Role::ReadOnly)));
        let address = IpAddr::from([10, 0, 0, 1]);
        (0..WRONG_PASSWORDS_MAX).for_each(|_| sessions.tried(address, "ann", false));
        assert!(!sessions.may_try(address, "ann") && sessions.may_try(IpAddr::from([10, 0, 0, 2]), "ann"));
        let other = (0..).map(|nth| format!("user{nth}")).find(|name| sessions.may_try(address, name));
        assert!(other.is_some(), "other users of the address may try");
        let place = sessions.place(address, "ann");
        sessions.table().wrong.get_mut(&place).expect("it tried").1 = ago(WRONG_PASSWORD_WAIT);
        assert!(sessions.may_try(address, "ann"));
    }
}
