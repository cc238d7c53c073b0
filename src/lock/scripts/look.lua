-- Reads a lock and its lease record, and changes the record only by commands that work when memory is full.
local call = redis.call

local function clock()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- When a key expires. So far away that the server could not be told the record's own expiry (a number in a script is
-- exact up to 2^53) is never.
local function expiry(k)
  local e = call('PEXPIRETIME', k)
  return e > 1e15 and -1 or e
end

-- The record's field lease: the version of all this, when the record was to expire at first (of a lease without TTL:
-- when it was granted), its connection, its number on this record (1: nothing was owed when it was granted), its TTL at
-- first (0: none), the window. It stays when the lease ends and debts are left; owner, token and marks go. Whether the
-- lease is current, the record's own expiry says. (One field of more than 64 bytes, and the server would keep the record
-- in a larger and slower way.)
--
-- at: the lock's expiry (-1 none, -2 no lock). state: free, current, adrift, open or unmanaged. debts: the unpaid ones
-- within the window, oldest first; doubts: those paid doubtfully under the lease. past: the last lease is past its due
-- expiry, and last is the debt that came of it. early: it went before that. alien: a record of another version.
local function look(k, r, at)
  local s = {k = k, r = r, at = at or expiry(k), debts = {}, doubts = {}, stale = 0}
  s.state = s.at == -2 and 'free' or 'unmanaged'
  local f = call('HGETALL', r)
  if #f == 0 then return s end
  local h = {}
  for i = 1, #f, 2 do h[f[i]] = f[i + 1] end
  s.h = h
  local at, c, n, ttl, w = string.match(h.lease or '', '^2 (%d+) (%S+) (%d+) (%d+) (%d+)$')
  if not at then
    s.alien = true
    return s
  end
  s.window, h.number = tonumber(w), n
  if h.token then h.connection, h.acquired_at = c, ttl == '0' and tonumber(at) or at - w - ttl end
  if h.token or h.opened then
    local due = call('PEXPIRETIME', r)
    if due >= 0 then due = due - s.window end
    s.due = due
    if s.at ~= -2 and math.abs(s.at - due) <= 2 then
      s.state = h.opened and 'open' or 'current'
    else
      s.now = clock()
      if due >= 0 and due - s.now <= 2 then s.past = h.token
      elseif s.at == -2 then s.early = true
      else s.state = h.opened and 'open' or 'adrift' end
    end
  end
  if not h.debts and not s.past then return s end
  s.now = s.now or clock()
  local all = {}
  for n in string.gmatch(h.debts or '', '%d+') do
    local due, c, o = string.match(h['debt:' .. n] or '', '^(%d+) (%S+) (.*)$')
    if due then
      local d = {n = n, due = tonumber(due), c = c, o = o, open = h['open:' .. n], unpaid = h['unpaid:' .. n]}
      all[#all + 1] = d
      if not d.unpaid then s.doubts[#s.doubts + 1] = d end
    end
  end
  if s.past then
    s.last = s.doubts[#s.doubts]
    if not s.last and h.owing then
      s.last = {n = h.number, due = s.due, c = h.connection, o = h.owner, open = h.connection_open}
      all[#all + 1] = s.last
    end
  end
  for _, d in ipairs(all) do
    if d.unpaid or d == s.last then
      if s.window > 0 and s.now - d.due < s.window then s.debts[#s.debts + 1] = d
      else
        s.stale = s.stale + 1
        if d == s.last then s.last = nil end
      end
    end
  end
  return s
end

local function since(t, now) return t and string.format('%.0f', math.max(now - t, 0)) or '?' end

-- Words of a report: the last lease was found expired.
local function expired(s)
  if not s.last then return '' end
  return ' expired=' .. since(s.h.acquired_at, s.due) .. '/' .. s.h.connection .. '/' .. s.h.owner
end
