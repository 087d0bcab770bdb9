--[[ gcra: one check of one key
  The generic cell rate algorithm keeps the theoretical arrival time of the next cell; the token bucket keeps the missing
  tokens. With deficit = (tat - now) / interval they are one function (gcra.test.ts compares them with the textbook form),
  so the body is the token bucket's ('b'), under a letter of its own.
  policy   burst, amount, scale_ms (the emission interval is scale_ms/amount) ]]
return algorithm('b')
