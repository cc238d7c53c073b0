-- The release accounting.
local function pay(s, d, doubtful)
  if doubtful then return call('HDEL', s.r, 'unpaid:' .. d.n) end
  for i, x in ipairs(s.debts) do
    if x == d then table.remove(s.debts, i) break end
  end
  if d == s.last or s.early or not s.due then return finish(s, d) end
  local f = {}
  fields(f, d)
  call('HDEL', s.r, unpack(f))
end

-- Which line fits: the outcome, and the debt to pay.
local function account(s, w)
  local h, current = s.h or {}, s.state == 'current'
  local own = current and h.connection == w.c
  for _, d in ipairs(s.debts) do
    if d.c == w.c then return 'late', d, own end
  end
  if own then
    for _, d in ipairs(s.debts) do
      if d.o == h.owner and d.open then return 'late', d, true end
    end
    return 'released'
  end
  local same = current and h.owner == w.o
  for _, d in ipairs(s.debts) do
    if d.o == w.o then return 'late', d, same end
  end
  if same then return 'pooled' end
  local drift = s.state == 'adrift' or s.alien
  local mine = h.owner == w.o or h.connection == w.c
  if s.at == -2 then return 'absent' end
  if current or drift and not mine then return 'foreign' end
  if drift or s.state == 'open' or w.allow then return 'unmanaged' end
  return 'refused'
end

-- Does what the accounting says, but for removing the lock: returns whether that is to be done, and the report.
local function release(s, w)
  local outcome, d, doubtful = account(s, w)
  if d then
    local report = 'late overrun=' .. since(d.due, s.now) .. without_ttl(s)
    if s.at ~= -2 then report = report .. ' refused=late' end
    if d == s.last then report = report .. expired(s) end
    pay(s, d, doubtful)
    return false, report
  end
  if outcome == 'released' or outcome == 'pooled' then
    return true, outcome .. ' held=' .. since(s.h.acquired_at, s.now or clock())
  end
  if outcome == 'unmanaged' then return true, outcome end
  if s.early then finish(s) end
  if outcome == 'absent' then return false, outcome end
  if outcome == 'refused' then return false, 'unmanaged refused=unmanaged' .. without_ttl(s) end
  return false, outcome .. ' refused=' .. outcome .. without_ttl(s)
end

-- The lock has been removed.
local function removed(s)
  if s.state ~= 'unmanaged' and s.state ~= 'free' then finish(s) end
end
