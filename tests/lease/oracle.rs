//! What the model says of a step, in the same words as what the server's answers are put into.

use lockward::event::{Event, Operation, ReleaseOutcome, What};
use lockward::lock::chore::Done;
use lockward::lock::idiom::Kind;
use lockward::lock::model::{Caller, Expired, Lock, Model, NewExpiry, Outcome, Standing};

use super::super::step::{Step, Ttl};
use super::super::view::View;
use super::super::world::UNTOLD;
use super::{Asked, Came};

/// The first word of something said, for the count of what was reached.
pub fn word(said: &str) -> &'static str {
    const KNOWN: [&str; 22] = [
        "granted overlap",
        "granted",
        "contended",
        "released",
        "pooled",
        "late",
        "foreign",
        "absent",
        "unmanaged",
        "self_checked",
        "refused release",
        "refused extend",
        "refused overwrite",
        "extended",
        "overwritten",
        "taken over",
        "expired",
        "renewed",
        "freed",
        "live",
        "Lost",
        "Doubtful",
    ];
    let said = said.split_once(' ').map_or(said, |(_, said)| said);
    KNOWN
        .into_iter()
        .find(|known| said.starts_with(known))
        .unwrap_or("other")
}

/// An event in the words of the comparison.
pub fn say(key: usize, event: &Event, came: &mut Came) {
    let text = match &event.what {
        What::Granted(grant) => {
            let overlap = if grant.overlap { " overlap" } else { "" };
            format!("granted{overlap} {} {}", grant.ttl_injected, grant.ttl_reduced)
        }
        What::Contended { .. } => "contended".to_owned(),
        What::Release(release) => {
            let held = release.held_ms.map(|ms| ms as i64);
            let untold = held.is_none() && release.outcome == ReleaseOutcome::Released;
            came.numbers.extend(held.or(untold.then_some(UNTOLD)));
            came.numbers.extend(release.overrun_ms.map(|ms| ms as i64));
            release.outcome.word().to_owned()
        }
        What::Refused(refusal) => format!("refused {} {}", refusal.operation.word(), refusal.reason.word()),
        What::Extended { reduced, .. } => format!("extended {reduced}"),
        What::Overwritten { reduced, .. } => format!("overwritten {reduced}"),
        What::TakenOver => "taken over".to_owned(),
        What::Expired { held_ms } => {
            came.numbers.extend(held_ms.map(|ms| ms as i64));
            format!("expired {} {}", event.connection, event.owner)
        }
        What::DebtsDropped { reason, count } => format!("dropped {} {count}", reason.word()),
        other => format!("{other:?}"),
    };
    if !text.starts_with("dropped window") {
        came.said.push(format!("{key} {text}"));
    }
}

fn expired(key: usize, expired: Option<&Expired>, came: &mut Came) {
    if let Some(expired) = expired {
        came.numbers.push(expired.held_ms);
        came.said.push(format!(
            "{key} expired {} {}",
            expired.holder.connection, expired.holder.owner
        ));
    }
}

/// The model's outcome in the same words.
fn outcome(key: usize, outcome: &Outcome, came: &mut Came) {
    let text = match outcome {
        Outcome::Granted(granted) => {
            expired(key, granted.expired.as_ref(), came);
            if granted.dropped_by_cap > 0 {
                came.said.push(format!("{key} dropped cap {}", granted.dropped_by_cap));
            }
            let overlap = if granted.overlap { " overlap" } else { "" };
            format!("granted{overlap} {} {}", granted.injected, granted.reduced)
        }
        Outcome::Contended => "contended".to_owned(),
        Outcome::Release {
            outcome,
            held_ms,
            overrun_ms,
            refused,
            expired: last,
        } => {
            expired(key, last.as_ref(), came);
            came.numbers.extend(held_ms.iter().chain(overrun_ms));
            came.said.push(format!("{key} {}", outcome.word()));
            if let Some(reason) = refused {
                came.said.push(format!("{key} refused release {}", reason.word()));
            }
            return;
        }
        Outcome::Refused(operation, reason) => format!("refused {} {}", operation.word(), reason.word()),
        Outcome::Extended(reduced) => format!("extended {reduced}"),
        Outcome::Overwritten(reduced) => format!("overwritten {reduced}"),
        Outcome::TakenOver => "taken over".to_owned(),
        Outcome::Nothing => return,
    };
    came.said.push(format!("{key} {text}"));
}

fn chore_done(done: &Done) -> String {
    match done {
        Done::Renewed { .. } => "renewed".to_owned(),
        Done::Freed { .. } => "freed".to_owned(),
        Done::Live { .. } => "live".to_owned(),
        other => format!("{other:?}"),
    }
}

pub fn done(done: &Done, came: &mut Came) {
    came.reply = String::new();
    came.said.push(format!("- {}", chore_done(done)));
    match done {
        Done::Renewed { ttl_ms } => came.numbers.push(*ttl_ms as i64),
        Done::Freed { held_ms } => came.numbers.extend(held_ms.map(|ms| ms as i64)),
        Done::Live { ttl_ms } => came.numbers.extend(ttl_ms.map(|ms| ms as i64)),
        _ => {}
    }
}

fn new_expiry(ttl: Ttl, now: i64) -> NewExpiry {
    match ttl {
        Ttl::Keep => NewExpiry::Keep,
        Ttl::Never => NewExpiry::Never,
        Ttl::In(ms) => NewExpiry::At(now + ms),
        Ttl::At(at) => NewExpiry::At(at),
    }
}

/// Tells the models the step, at this moment of the server's clock.
pub fn tell(models: &mut [Model; 2], plain: &mut bool, asked: &Asked, views: &[(usize, View)], now: i64) -> Came {
    let mut came = Came::default();
    let key = asked.key;
    let caller = &asked.callers[key];
    match &asked.step {
        Step::Write { kind, words, ttl, xx } => {
            let model = &mut models[key];
            model.ripen(now);
            let existed = model.lock.is_some();
            if *xx && !existed {
                model.settle_early();
                came.reply = "nil".to_owned();
                return came;
            }
            let result = model.write(*kind, caller, new_expiry(*ttl, now), now);
            came.reply = write_reply(&result, words, existed, *xx, asked.nil_allowed);
            outcome(key, &result, &mut came);
        }
        Step::WriteBoth { nx } => write_both(models, plain, asked, *nx, now, &mut came),
        Step::Remove { nil, .. } => remove(&mut models[key], asked, *nil, now, &mut came),
        Step::RemoveBoth => remove_both(models, plain, asked, now, &mut came),
        Step::Extend { ttl, nil, .. } => extend(&mut models[key], asked, *ttl, *nil, now, &mut came),
        Step::Rename { nx } => rename(models, asked, *nx, now, &mut came),
        Step::Direct { words } => direct(&mut models[key], words, now),
        Step::SelfChecked { words } => {
            direct(&mut models[key], words, now);
            let result = models[key].reconcile(caller, now);
            came.reply = "0".to_owned();
            outcome(key, &result, &mut came);
        }
        Step::Fence => fence(&mut models[key], caller, &views[0].1, now, &mut came),
        Step::Gone => {
            models[key].gone(&caller.connection, now);
            done(&Done::Marked, &mut came);
        }
        Step::DropDebts { owner } => {
            models[key].drop_debts(owner, now);
            done(&Done::Marked, &mut came);
        }
        Step::Renew { ttl } => done(&models[key].renew(asked.token, *ttl, now), &mut came),
        Step::Free { by_force } => done(&models[key].free((!by_force).then_some(asked.token), now), &mut came),
        Step::Check => done(&models[key].check(asked.token, now), &mut came),
    }
    came
}

fn write_reply(result: &Outcome, words: &[String], existed: bool, xx: bool, nil_allowed: bool) -> String {
    let name = words[0].to_ascii_uppercase();
    let get = name == "GETSET" || words.iter().any(|word| word == "GET");
    let reply = match result {
        Outcome::Contended if get => "bulk",
        Outcome::Contended if name == "SETNX" => "0",
        Outcome::Contended => "nil",
        Outcome::Refused(..) if get || name == "PSETEX" => "LOCKHELD lock",
        Outcome::Refused(..) if xx || nil_allowed => "nil",
        Outcome::Refused(..) => "LOCKHELD lock",
        _ if get && existed => "bulk",
        _ if get => "nil",
        _ if name == "SETNX" => "1",
        _ => "OK",
    };
    reply.to_owned()
}

fn remove(model: &mut Model, asked: &Asked, nil: bool, now: i64, came: &mut Came) {
    model.ripen(now);
    let existed = model.lock.is_some();
    let result = model.release(&asked.callers[asked.key], now);
    came.reply = match (existed && model.lock.is_none(), nil) {
        (true, true) => "bulk",
        (true, false) => "1",
        (false, true) => "nil",
        (false, false) => "0",
    }
    .to_owned();
    outcome(asked.key, &result, came);
}

fn remove_both(models: &mut [Model; 2], plain: &mut bool, asked: &Asked, now: i64, came: &mut Came) {
    let mut sum = i64::from(std::mem::take(plain));
    for (key, model) in models.iter_mut().enumerate() {
        model.ripen(now);
        let existed = model.lock.is_some();
        let result = model.release(&asked.callers[key], now);
        sum += i64::from(existed && model.lock.is_none());
        outcome(key, &result, came);
    }
    came.reply = sum.to_string();
}

fn write_both(models: &mut [Model; 2], plain: &mut bool, asked: &Asked, nx: bool, now: i64, came: &mut Came) {
    let mut taken = nx && *plain;
    for (key, model) in models.iter_mut().enumerate() {
        model.ripen(now);
        let result = model
            .clone()
            .write(Kind::Overwrite, &asked.callers[key], NewExpiry::Never, now);
        if nx && model.lock.is_some() {
            taken = true;
            outcome(key, &Outcome::Contended, came);
        } else if let Outcome::Refused(Operation::Overwrite, _) = result {
            outcome(key, &result, came);
            came.reply = "LOCKHELD lock".to_owned();
            return;
        }
    }
    if taken {
        came.reply = "0".to_owned();
        return;
    }
    *plain = true;
    came.reply = if nx { "1" } else { "OK" }.to_owned();
    for (key, model) in models.iter_mut().enumerate() {
        let result = model.write(Kind::Overwrite, &asked.callers[key], NewExpiry::Never, now);
        outcome(key, &result, came);
    }
}

fn extend(model: &mut Model, asked: &Asked, ttl: Ttl, nil: bool, now: i64, came: &mut Came) {
    let caller = &asked.callers[asked.key];
    model.ripen(now);
    let existed = model.lock;
    let result = match ttl {
        Ttl::At(at) if at <= now => model.release(caller, now),
        _ => model.extend(caller, new_expiry(ttl, now), !nil, now),
    };
    let applied = match &result {
        Outcome::Release { .. } => existed.is_some() && model.lock.is_none(),
        // PERSIST under max_ttl changes nothing, and says so.
        Outcome::Extended(true) if ttl == Ttl::Never && !nil => false,
        Outcome::Extended(_) => true,
        Outcome::Nothing if nil => existed.is_some(),
        Outcome::Nothing if ttl == Ttl::Never => existed.is_some_and(|lock| lock.expiry.is_some()),
        Outcome::Nothing => existed.is_some(),
        _ => false,
    };
    came.reply = match (applied, nil) {
        (true, true) => "bulk",
        (true, false) => "1",
        (false, true) => "nil",
        (false, false) => "0",
    }
    .to_owned();
    outcome(asked.key, &result, came);
}

fn rename(models: &mut [Model; 2], asked: &Asked, nx: bool, now: i64, came: &mut Came) {
    let (from, to) = (asked.key, 1 - asked.key);
    models.iter_mut().for_each(|model| model.ripen(now));
    let missing = "ERR no such key".to_owned();
    let source = models[from].lock;
    let target = models[to].lock;
    if nx && source.is_some() && target.is_some() {
        came.reply = "0".to_owned();
        return;
    }
    let mut after = models[from].clone();
    let released = after.release(&asked.callers[from], now);
    let Some(Lock { expiry }) = source.filter(|_| after.lock.is_none()) else {
        models[from] = after;
        outcome(from, &released, came);
        came.reply = missing;
        return;
    };
    let expiry = expiry.map_or(NewExpiry::Never, NewExpiry::At);
    let mut written = models[to].clone();
    let result = written.write(Kind::Overwrite, &asked.callers[to], expiry, now);
    if let Outcome::Refused(..) = result {
        outcome(to, &result, came);
        came.reply = "LOCKHELD lock".to_owned();
        return;
    }
    models[from] = after;
    models[to] = written;
    outcome(from, &released, came);
    outcome(to, &result, came);
    came.reply = if nx { "1" } else { "OK" }.to_owned();
}

fn direct(model: &mut Model, words: &[String], now: i64) {
    model.ripen(now);
    let ms = |text: &String| text.parse::<i64>().expect("a number");
    match (words[0].as_str(), model.lock) {
        ("DEL", _) => model.lock = None,
        ("PEXPIRE", Some(_)) => {
            model.lock = Some(Lock {
                expiry: Some(now + ms(&words[2])),
            })
        }
        ("PERSIST", Some(_)) => model.lock = Some(Lock { expiry: None }),
        ("SET", None) if words.len() > 3 => {
            model.lock = Some(Lock {
                expiry: Some(now + ms(&words[4])),
            })
        }
        ("SET", _) if words.len() == 3 => model.lock = Some(Lock { expiry: None }),
        _ => {}
    }
}

fn fence(model: &mut Model, caller: &Caller, view: &View, now: i64, came: &mut Came) {
    model.ripen(now);
    let holder = model.lease.as_ref().and_then(|lease| lease.holder.as_ref());
    let free_of_debt = model.debts.iter().all(|debt| debt.owner != caller.owner);
    let told = model.standing() == Standing::Current
        && holder.is_some_and(|holder| {
            holder.connection == caller.connection || holder.owner == caller.owner && free_of_debt
        });
    let number = view.fields.get("fence").filter(|_| told);
    came.reply = number.cloned().unwrap_or_else(|| "nil".to_owned());
}
