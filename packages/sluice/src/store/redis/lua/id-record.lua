--[[ id-record: the record of a request id; included where records are read or written, so that the format is in one place
  text     "3 fingerprint entry_id claims\n", the time and the numbers of the reply, "\n", the receipt (JSON; see wire.ts)
           the numbers are those of decide.lua, without the 64 of the first code: a reader takes as many as it knows, and ignores any after
           them 3 is the layout, as in the record's key (keys.ts): change both, and its reader (decodeRecord in wire.ts), together
           claims: the entry ids of the attempts that rely on this charge, separated by commas; "*" if there were too many to list
  or       "3 tombstone dropped_at_ms entry_id": the record was dropped. An attempt that was sent before that and arrives after
           would make a charge that nobody gives back: it is late. One that was sent after that is decided anew.
  A record with a charge exists exactly as long as its charge stands: a refund or an undo drops it with the charge. ]]
local REMEMBER_MS, MOST_CLAIMS = '60000', 8
local CONFLICT, LATE = '!\n', '<\n'

local function spell_record(fingerprint, entry_id, numbers, receipt)
  return table.concat({ '3 ', fingerprint, ' ', entry_id, ' ', entry_id, '\n', numbers, '\n', receipt })
end

-- The fingerprint, the entry id and the claims; nil if the text is not a record.
local function read_record(text)
  return string.match(text, '^3 (%S+) (%S+) (%S+)\n')
end

-- When the record was dropped, and the entry id of its charge; nil if the text is a record.
local function read_tombstone(text)
  local dropped_at, entry_id = string.match(text, '^3 tombstone (%d+) (%S+)$')
  return tonumber(dropped_at), entry_id
end

local function with_claims(text, claims)
  return string.gsub(text, '^(3 %S+ %S+) %S+', '%1 ' .. claims, 1)
end

-- A tombstone from the future was written by a clock that was ahead: it means nothing.
local function is_late(dropped_at, sent_at)
  return dropped_at <= now and sent_at < dropped_at
end

-- Adds an attempt that relies on the record.
local function claim(text, attempt)
  local _, _, claims = read_record(text)
  if claims == '*' then return text end
  local _, commas = string.gsub(claims, ',', '')
  return (with_claims(text, commas + 1 < MOST_CLAIMS and claims .. ',' .. attempt or '*'))
end

-- The claims without an attempt's; '' if none are left. Claims that can no longer be told apart are never given up.
local function without_claim(claims, attempt)
  if claims == '*' then return claims end
  local left = {}
  for other in string.gmatch(claims, '[^,]+') do
    if other ~= attempt then left[#left + 1] = other end
  end
  return table.concat(left, ',')
end

-- Drops the record of a charge that is to be given back: for a refund at once, for an attempt when no other relies on it.
local function drop_record(key, text, entry_id, attempt)
  local _, entry, claims = read_record(text or '')
  if entry ~= entry_id then return false end
  local left = attempt ~= '' and without_claim(claims, attempt) or ''
  if left == '' then
    call('SET', key, '3 tombstone ' .. spell(now) .. ' ' .. entry_id, 'PX', REMEMBER_MS)
  else
    call('SET', key, with_claims(text, left), 'KEEPTTL')
  end
  return left == ''
end
