-- The caller's row of the decision table, for a lock that exists: holder, sibling (same owner), debtor (same owner, own
-- debt), other, unmanaged (as Redis does it) or refused (unmanaged, and the rule refuses that).
local function row(s, w)
  local h = s.h or {}
  if s.state == 'current' then
    if h.connection == w.c then return 'holder' end
    if h.owner ~= w.o then return 'other' end
    for _, d in ipairs(s.debts) do
      if d.c == w.c then return 'debtor' end
    end
    return 'sibling'
  end
  if s.state == 'adrift' or s.alien then
    return (h.owner == w.o or h.connection == w.c) and 'unmanaged' or 'other'
  end
  return (s.state == 'open' or w.allow) and 'unmanaged' or 'refused'
end

-- Why an operation is refused.
local function reason(s, w)
  for _, d in ipairs(s.debts) do
    if d.c == w.c or d.o == w.o then return 'late' end
  end
  return 'foreign'
end

-- The record follows the lock's expiry. give: the TTL for a lock that has just lost its own, 0 for none. Returns words
-- for the report.
local function follow(s, w, give)
  local e, words = expiry(s.k), ''
  if e == -1 and s.at >= 0 and give > 0 then
    call('PEXPIRE', s.k, give)
    words = ' reduced'
  end
  if e == -2 then
    finish(s)
    return ''
  end
  local left = call('PTTL', s.k)
  if w.max > 0 and left > w.max then
    call('PEXPIRE', s.k, w.max)
    left, words = w.max, ' reduced'
  end
  e = expiry(s.k)
  if e == -1 then call('PERSIST', s.r)
  else
    call('PEXPIREAT', s.r, e + s.window)
    words = words .. ' ttl=' .. string.format('%.0f', left)
  end
  return words
end
