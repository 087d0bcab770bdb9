--[[ hold: the record of a reservation; included where holds are read or written, so that the format is in one place; twin of hold.ts
  text     "2 digest ends_ms open\n", then a row for the check and for each extension: "entry_id at_ms units units ... owed owed ...\n",
           one number of each per counter: owed is what a bucket lacked after the charge, plus what had been given back by then; 0 for
           others settled: "2 digest ends_ms settled\n", the same rows, "= cost cost ... name\n": the name of the settlement that counted,
           in letters, which an older version does not write, and ignores
           2 is the layout, as in the record's key (keys.ts): change both
  It outlives its end by a minute, so that a repeated settlement gets the same answer. ]]
local REMEMBER_HOLD_MS, MOST_ROWS = 60000, 64

local function spell_units(units)
  local texts = {}
  for i = 1, #units do texts[i] = format('%.0f', units[i]) end
  return table.concat(texts, ' ')
end

local function save_hold(key, hold)
  local lines = { '2 ' .. hold.digest .. ' ' .. spell(hold.ends) .. (hold.charged and ' settled' or ' open') }
  for r = 1, #hold.rows do
    local row = hold.rows[r]
    lines[r + 1] = row.entry .. ' ' .. spell(row.at) .. ' ' .. spell_units(row.units) .. ' ' .. spell_units(row.owed)
  end
  if hold.charged then lines[#lines + 1] = '= ' .. spell_units(hold.charged) .. (hold.by and ' ' .. hold.by or '') end
  call('SET', key, table.concat(lines, '\n') .. '\n', 'PXAT', spell(max(now + 1, hold.ends + REMEMBER_HOLD_MS)))
end

local function numbers_in(text)
  local numbers = {}
  for number in string.gmatch(text, '%d+') do numbers[#numbers + 1] = tonumber(number) end
  return numbers
end

-- Returns nil if the text is not a hold.
local function read_hold(text)
  local digest, ends, state = string.match(text or '', '^2 (%S+) (%d+) (%a+)\n')
  if not digest then return nil end
  local hold = { digest = digest, ends = tonumber(ends), rows = {} }
  for name, rest in string.gmatch(string.match(text, '\n(.*)'), '(%S+) ([^\n]*)\n') do
    local numbers = numbers_in(rest)
    if name == '=' then
      hold.charged, hold.by = numbers, string.match(rest, '(%a+)$')
    else
      local units, owed, count = {}, {}, (#numbers - 1) / 2
      for i = 1, count do units[i], owed[i] = numbers[1 + i], numbers[1 + count + i] end
      hold.rows[#hold.rows + 1] = { entry = name, at = numbers[1], units = units, owed = owed }
    end
  end
  return hold
end

local function held_of(hold, counter)
  local sum = 0
  for r = 1, #hold.rows do sum = sum + hold.rows[r].units[counter] end
  return sum
end

local function extension_name(hold)
  return hold.rows[1].entry .. ':x' .. min(#hold.rows, MOST_ROWS - 1)
end

-- Extensions beyond the maximum share the last row, and count as if they were as old as it.
local function add_row(hold, units, owed)
  local rows = hold.rows
  if #rows < MOST_ROWS then
    rows[#rows + 1] = { entry = extension_name(hold), at = now, units = units, owed = owed }
    return
  end
  local last = rows[#rows]
  for i = 1, #units do last.units[i] = last.units[i] + units[i] end
end
