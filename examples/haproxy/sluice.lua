-- May the request pass? Asks Sluice's forward-auth route, as nginx, Caddy and Traefik do.
-- HAProxy's own HTTP client keeps the event loop free while it waits.
-- A turn (maxWait) further away than "wait" is refused: keep it below the timeout.
local SLUICE = "http://127.0.0.1:8080/v1/forward-auth?wait=500ms"
local TIMEOUT_MS = 1000
-- While there is no connection to Sluice, until HAProxy has noticed: true lets requests pass, false refuses them with 503.
local PASS_WITHOUT_SLUICE = true
-- Only what Sluice needs to know: those that attributes.yaml reads.
local READ_BY_RULES = { "x-user", "x-tenant", "cookie" }

local function question(txn)
  local headers = {
    ["x-forwarded-method"] = { txn.sf:method() },
    ["x-forwarded-uri"] = { txn.sf:url() },
    ["x-forwarded-host"] = { txn.sf:req_hdr("host") },
    ["x-forwarded-for"] = { txn.sf:src() },
  }
  local came = txn.http:req_get_headers()
  for _, name in ipairs(READ_BY_RULES) do
    local values = came[name]
    if values ~= nil then
      -- HAProxy counts from 0. Each is sent as its own field, for Sluice to refuse several of one name.
      headers[name] = {}
      for i = 0, #values do headers[name][i + 1] = values[i] end
    end
  end
  return headers
end

local function first(headers, name)
  local values = headers ~= nil and headers[name] or nil
  return values ~= nil and values[0] or nil
end

-- Sluice answers 200, or a problem. Anything else is HAProxy's own: 503 where there was no connection; 502 or 504 where Sluice was reached,
-- and then broke off or was late. A client could make it so: such a request does not pass.
local function is_from_sluice(answer)
  local content_type = first(answer.headers, "content-type")
  return answer.status == 200 or (content_type ~= nil and content_type:find("application/problem+json", 1, true) == 1)
end

-- HAProxy has one buffer for a reply (tune.bufsize, 16 KiB): a body that names very many rules is left out.
local LONGEST_BODY = 8000

local function refuse(txn, answer)
  local body = answer.body
  if body ~= nil and #body > LONGEST_BODY then body = nil end
  local reply = txn:reply({ status = answer.status, body = body })
  for _, name in ipairs({ "content-type", "retry-after", "ratelimit", "ratelimit-policy" }) do
    local value = first(answer.headers, name)
    if value ~= nil then reply:add_header(name, value) end
  end
  txn:done(reply)
end

core.register_action("sluice", { "http-req" }, function(txn)
  local answer = core.httpclient():get({ url = SLUICE, headers = question(txn), timeout = TIMEOUT_MS })
  if not is_from_sluice(answer) then
    if answer.status == 503 and PASS_WITHOUT_SLUICE then return end
    return txn:done(txn:reply({ status = 503 }))
  end
  if answer.status ~= 200 then return refuse(txn, answer) end
  local limit = first(answer.headers, "ratelimit")
  if limit ~= nil then
    txn:set_var("txn.sluice_limit", limit)
    txn:set_var("txn.sluice_policy", first(answer.headers, "ratelimit-policy"))
  end
end)
