-- Ends the script if the client's user may not do what the bookkeeping of this lock will need (names of commands, or
-- false): asked before the command itself is run, so that nothing is half done. Which keys he may touch the server has
-- checked at EVAL.
local function need(s, ...)
  for _, name in pairs({...}) do
    if name and not redis.acl_check_cmd(name, s.r) then
      error({err = "NOPERM the user executing the script can't run '" .. string.lower(name) .. "'"})
    end
  end
end
