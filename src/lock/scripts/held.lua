local function held(k)
  local shown = string.gsub(string.sub(k, 1, 200), '[%c\127-\255\'\\]', function(c)
    return string.format('\\x%02x', string.byte(c))
  end)
  return {err = string.format('@LOCKHELD@', shown)}
end
