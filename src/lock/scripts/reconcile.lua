-- Behind a command that was taken at its word. KEYS: each lock and its record. ARGV: each caller.
local function main()
  local parts = {}
  for i = 1, #ARGV do
    local s, w = look(KEYS[2 * i - 1], KEYS[2 * i]), who(ARGV[i])
    parts[i] = '-'
    if s.early then
      if s.h.token then parts[i] = 'self_checked held=' .. since(s.h.acquired_at, s.now) end
      finish(s)
    elseif s.state == 'open' or s.state == 'adrift' and row(s, w) == 'unmanaged' then
      if math.abs(s.at - s.due) > 2 then parts[i] = 'extended' .. follow(s, {max = 0}, 0) end
    end
  end
  return {table.concat(parts, ';'), 0}
end
