//! Runs Lua scripts as the server does: Lua 5.1, `redis.call` and its sisters, the server's conversions. The texts are
//! lockward's own, unless a planted fault changes one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use lockward::lock::script::squeezed;
use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue};

use super::keyspace::{Bytes, Core, DATABASES};
use crate::resp::Reply;

/// `redis.call` raises what `redis.pcall` returns; an error that nobody caught is named as the server names it.
const PRELUDE: &str = r"
local raw = ...
redis = {
  pcall = raw,
  call = function(...)
    local a = raw(...)
    if type(a) == 'table' and a.err then error(a, 0) end
    return a
  end,
  -- Everybody may do everything here.
  acl_check_cmd = function() return true end,
  error_reply = function(text) return {err = text} end,
  status_reply = function(text) return {ok = text} end,
}
return function(script)
  local ok, a = pcall(script)
  if ok then return a end
  local text = type(a) == 'table' and a.err or 'ERR ' .. tostring(a)
  return {err = text .. ' script: on @user_script:1.'}
end
";

/// A change to a script's text: what is replaced, and by what.
#[derive(Clone, Copy, Debug)]
pub struct Patch {
    pub from: &'static str,
    pub to: &'static str,
}

pub struct Engine {
    lua: Lua,
    run: Function,
    compiled: BTreeMap<Bytes, Function>,
    database: Rc<Cell<usize>>,
    core: Rc<RefCell<Core>>,
    patch: Option<Patch>,
    /// How many texts the patch changed.
    pub patched: usize,
}

impl Engine {
    pub fn new(core: &Rc<RefCell<Core>>, patch: Option<Patch>) -> Engine {
        let lua = Lua::new();
        let database = Rc::new(Cell::new(0));
        let shared = Rc::clone(core);
        let (core, selected) = (Rc::clone(core), Rc::clone(&database));
        let raw = lua
            .create_function(move |lua, args: MultiValue| call(lua, &core, &selected, args))
            .expect("a function");
        let run = lua.load(PRELUDE).call(raw).expect("the prelude runs");
        Engine {
            lua,
            run,
            compiled: BTreeMap::new(),
            database,
            core: shared,
            patch,
            patched: 0,
        }
    }

    pub fn run(&mut self, text: &[u8], keys: &[Bytes], argv: &[Bytes], database: usize) -> Reply {
        self.database.set(database);
        let script = match self.compile(text) {
            Ok(script) => script,
            Err(error) => return Reply::error(&format!("ERR Error compiling script: {error}")),
        };
        let globals = self.lua.globals();
        for (name, values) in [("KEYS", keys), ("ARGV", argv)] {
            let values = values
                .iter()
                .map(|value| self.lua.create_string(value).expect("a string"));
            let table = self.lua.create_sequence_from(values).expect("a table");
            globals.raw_set(name, table).expect("a global");
        }
        self.core.borrow_mut().in_script = true;
        let result = self.run.call::<LuaValue>(script);
        let mut core = self.core.borrow_mut();
        (core.in_script, core.script_wrote) = (false, false);
        match result {
            Ok(value) => from_lua(&value),
            Err(error) => Reply::error(&format!("ERR {error}").replace(['\r', '\n'], " ")),
        }
    }

    fn compile(&mut self, text: &[u8]) -> mlua::Result<Function> {
        if let Some(script) = self.compiled.get(text) {
            return Ok(script.clone());
        }
        let mut source = String::from_utf8_lossy(text).into_owned();
        if let Some(patch) = self.patch {
            let (from, to) = (squeezed(patch.from), squeezed(patch.to));
            if source.contains(&from) {
                source = source.replace(&from, &to);
                self.patched += 1;
            }
        }
        let script = self.lua.load(source).into_function()?;
        self.compiled.insert(text.to_vec(), script.clone());
        Ok(script)
    }
}

fn call(lua: &Lua, core: &RefCell<Core>, database: &Cell<usize>, args: MultiValue) -> mlua::Result<LuaValue> {
    let args: Vec<Bytes> = args.iter().map(argument).collect();
    if args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"SELECT")) {
        let index = String::from_utf8_lossy(&args[1]).parse().unwrap_or(DATABASES);
        assert!(index < DATABASES, "a script selects database {index}");
        database.set(index);
        return to_lua(lua, Reply::ok());
    }
    let reply = core.borrow_mut().data(database.get(), &args);
    to_lua(
        lua,
        reply.unwrap_or_else(|| Reply::error("ERR Unknown Redis command called from script")),
    )
}

fn argument(value: &LuaValue) -> Bytes {
    match value {
        LuaValue::String(text) => text.as_bytes().to_vec(),
        LuaValue::Integer(number) => number.to_string().into_bytes(),
        // As `%.17g`: whole numbers up to 1e17 have no exponent, and lockward has no others.
        LuaValue::Number(number) => format!("{number}").into_bytes(),
        other => panic!("a script calls a command with {other:?}"),
    }
}

fn to_lua(lua: &Lua, reply: Reply) -> mlua::Result<LuaValue> {
    let named = |name: &str, text: &[u8]| -> mlua::Result<LuaValue> {
        let table = lua.create_table()?;
        table.raw_set(name, lua.create_string(text)?)?;
        Ok(LuaValue::Table(table))
    };
    Ok(match reply {
        Reply::Status(text) => named("ok", &text)?,
        Reply::Error(text) => named("err", &text)?,
        Reply::Int(number) => LuaValue::Number(number as f64),
        Reply::Bulk(bytes) => LuaValue::String(lua.create_string(&bytes)?),
        Reply::Null | Reply::NullArray => LuaValue::Boolean(false),
        Reply::Array(elements) | Reply::Map(elements) => {
            let table = lua.create_table()?;
            for element in elements {
                table.raw_push(to_lua(lua, element)?)?;
            }
            LuaValue::Table(table)
        }
    })
}

fn from_lua(value: &LuaValue) -> Reply {
    match value {
        LuaValue::String(text) => Reply::Bulk(text.as_bytes().to_vec()),
        LuaValue::Integer(number) => Reply::Int(*number),
        // The fraction is lost.
        LuaValue::Number(number) => Reply::Int(*number as i64),
        LuaValue::Boolean(true) => Reply::Int(1),
        LuaValue::Table(table) => from_table(table),
        _ => Reply::Null,
    }
}

fn from_table(table: &Table) -> Reply {
    for (name, make) in [("err", Reply::Error as fn(Bytes) -> Reply), ("ok", Reply::Status)] {
        if let Ok(LuaValue::String(text)) = table.raw_get::<LuaValue>(name) {
            return make(text.as_bytes().to_vec());
        }
    }
    let elements = (1..).map(|index: i64| table.raw_get::<LuaValue>(index).unwrap_or(LuaValue::Nil));
    // The first nil ends an array.
    Reply::Array(
        elements
            .take_while(|value| !value.is_nil())
            .map(|value| from_lua(&value))
            .collect(),
    )
}
