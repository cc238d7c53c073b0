-- Takes back what was written on a free lock: without its record it would be nobody's. s: what was there before.
local function undo(k, s)
  -- Whatever the user may: each of these takes the key away.
  for _, c in ipairs({{'DEL', k}, {'UNLINK', k}, {'PEXPIRE', k, -1}, {'EXPIRE', k, -1}, {'GETDEL', k},
    {'SET', k, '', 'PX', 1}, {'PSETEX', k, 1, ''}, {'SETEX', k, 1, ''}}) do
    local a = redis.pcall(unpack(c))
    if type(a) ~= 'table' or not a.err then break end
  end
  if s and not s.h then redis.pcall('DEL', s.r) end
end

-- The field as look reads it.
local function lease(at, c, number, ttl, window)
  return string.format('2 %.0f %s %d %.0f %.0f', at, c, number, ttl, window)
end

-- Writes the record of a new lease on a lock that has just been taken; s is what was there before. Returns the report.
local function grant(s, w, fence)
  local e = expiry(s.k)
  if e == -2 then return '-' end
  local words = ''
  if e == -1 and w.default > 0 and call('PTTL', s.k) == -1 then
    call('PEXPIRE', s.k, w.default)
    e, words = expiry(s.k), ' injected'
  end
  if w.max > 0 and call('PTTL', s.k) > w.max then
    call('PEXPIRE', s.k, w.max)
    e, words = expiry(s.k), words .. ' reduced'
  end
  local now = s.now or clock()
  local kept, overlap = {}, false
  for _, d in ipairs(s.debts) do
    if w.window > 0 and now - d.due < w.window then
      kept[#kept + 1] = d
      -- Said once for each lease that ran out: at the next grant, if its holder may still be at work.
      overlap = overlap or d == s.last and (s.h.owner ~= w.o or s.h.connection ~= w.c and s.h.connection_open)
    else s.stale = s.stale + 1 end
  end
  if s.stale > 0 then words = words .. ' window=' .. s.stale end
  if #kept > 32 then words = words .. ' cap=' .. #kept - 32 end
  local at, ttl = now, 0
  if e >= 0 then at, ttl = e + w.window, math.max(e - now, 1) end
  local number = #kept > 0 and s.h.number + 1 or 1
  local f = {'lease', lease(at, w.c, number, ttl, w.window), 'owner', w.o, 'token', w.token,
    'connection_open', '1', 'owing', '1'}
  local function set(name, value)
    f[#f + 1] = name
    f[#f + 1] = value
  end
  local list = {}
  for i = math.max(#kept - 31, 1), #kept do
    local d = kept[i]
    list[#list + 1] = d.n
    set('debt:' .. d.n, string.format('%.0f', d.due) .. ' ' .. d.c .. ' ' .. d.o)
    set('unpaid:' .. d.n, 1)
    if d.open then set('open:' .. d.n, 1) end
  end
  if #list > 0 then set('debts', table.concat(list, ' ')) end
  if overlap then words = words .. ' overlap' end
  if ttl > 0 then words = words .. ' ttl=' .. string.format('%.0f', ttl) end
  if fence then
    local t = call('TIME')
    local last = tonumber(call('GET', fence) or 0) or 0
    local number = string.format('%.0f', math.max(last + 1, t[1] * 1000000 + t[2]))
    call('SET', fence, number)
    set('fence', number)
    words = words .. ' fence=' .. number
  end
  if s.h then call('DEL', s.r) end
  call('HSET', s.r, unpack(f))
  if e >= 0 then call('PEXPIREAT', s.r, e + w.window) end
  return 'granted' .. words .. expired(s)
end
