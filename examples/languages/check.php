<?php
// Three requests of one user, under a limit of two a minute: php check.php
declare(strict_types=1);

final class Limiter
{
    public function __construct(private string $server, private ?string $token = null, private float $timeout = 1.0) {}

    /** Asks twice at most. The id makes the second try safe: one request is charged once. Null: no answer. */
    public function check(array $attributes, int $cost = 1): ?array
    {
        $body = json_encode(["attributes" => $attributes, "cost" => $cost, "id" => bin2hex(random_bytes(16))]);
        return $this->ask("/v1/check", $body) ?? $this->ask("/v1/check", $body);
    }

    private function ask(string $path, string $body): ?array
    {
        $headers = ["Content-Type: application/json"];
        if ($this->token !== null) {
            $headers[] = "Authorization: Bearer {$this->token}";
        }
        $options = ["method" => "POST", "header" => $headers, "content" => $body, "timeout" => $this->timeout];
        // A problem is an answer too.
        $context = stream_context_create(["http" => $options + ["ignore_errors" => true]]);
        $answer = @file_get_contents($this->server . $path, false, $context);
        if ($answer === false) {
            return null;
        }
        $decoded = json_decode($answer, true, 16, JSON_THROW_ON_ERROR);
        if (!array_key_exists("allowed", $decoded)) {
            throw new RuntimeException("{$decoded['code']}: {$decoded['detail']}");
        }
        return $decoded;
    }
}

$limiter = new Limiter(
    getenv("SLUICE_SERVER") ?: "http://127.0.0.1:8080",
    getenv("SLUICE_API_TOKEN") ?: null,
    (float) (getenv("SLUICE_TIMEOUT") ?: 1),
);
for ($i = 0; $i < 3; $i++) {
    $decision = $limiter->check(["user" => "42"]);
    echo match (true) {
        // No answer is not a refusal: this program lets the request pass. A login form would not.
        $decision === null => "not asked, passes\n",
        $decision["allowed"] => "allowed, {$decision['remaining']} left\n",
        default => "refused by {$decision['rule']}\n",
    };
}
