-- Any failure goes back with the server's own text, without the script's name in it; where a command is not permitted
-- (which servers say in other words inside a script), with the code that it has outside.
local function failure(a)
  a = type(a) == 'table' and a.err or a
  a = string.gsub(a, '^ERR The user executing the script', 'NOPERM the user executing the script')
  a = string.gsub(a, '^ERR ACL failure', 'NOPERM ACL failure')
  if not string.find(a, '^%u+ ') then a = 'ERR ' .. a end
  return {err = a}
end
