-- DELEX … IFEQ, DELIFEQ and SET … IFEQ on a server without them. KEYS: lock, record. ARGV: caller; delete or set; the
-- value to compare with; whether SET answers the old value (get or '-'); SET without its condition.
local function main()
  local s, w = look(KEYS[1], KEYS[2]), who(ARGV[1])
  local old = redis.pcall('GET', s.k)
  if type(old) == 'table' then return old end
  local get = ARGV[4] == 'get'
  if old ~= ARGV[3] then
    if s.early then finish(s) end
    if ARGV[2] == 'delete' then return 0 end
    return get and old
  end
  need(s, 'DEL', 'TIME', 'HDEL', 'PTTL', 'PEXPIRE', 'PEXPIREAT', 'PERSIST')
  if ARGV[2] == 'delete' then
    call('DEL', s.k)
    local report = 'self_checked held=' .. since(s.h and s.h.acquired_at, s.now or clock())
    local lease = s.state == 'current' or s.state == 'adrift'
    if not s.alien then removed(s) end
    return {lease and report or '-', 1}
  end
  local a = redis.pcall(unpack(ARGV, 5))
  if type(a) == 'table' and a.err then return a end
  local place = row(s, w)
  local report = '-'
  if place == 'holder' or place == 'sibling' or place == 'debtor' or s.state == 'open'
    or s.state == 'adrift' and place == 'unmanaged' then
    report = 'overwritten' .. follow(s, w, w.max > 0 and w.max or w.default)
  end
  return {report, get and old or a}
end
