-- The caller as lockward packs it into one argument.
local function who(s)
  local a, w, d, m, t, c, o = string.match(s, '^(%d) (%d+) (%d+) (%d+) (%S+) (%S+) (.*)$')
  return {allow = a == '1', window = tonumber(w), default = tonumber(d), max = tonumber(m), token = t, c = c, o = o}
end
