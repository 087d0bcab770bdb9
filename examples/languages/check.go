// Three requests of one user, under a limit of two a minute: go run check.go
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

type Decision struct {
	Allowed      bool   `json:"allowed"`
	Rule         string `json:"rule"`
	Remaining    int64  `json:"remaining"`
	RetryAfterMs int64  `json:"retryAfterMs"`
}

type Limiter struct {
	Server, Token string
	Client        *http.Client
}

// Check asks twice at most. The id makes the second try safe: one request is charged once.
func (l *Limiter) Check(ctx context.Context, attributes map[string]any, cost int) (Decision, error) {
	random := make([]byte, 16)
	rand.Read(random)
	id := hex.EncodeToString(random)
	body, err := json.Marshal(map[string]any{"attributes": attributes, "cost": cost, "id": id})
	if err != nil {
		return Decision{}, err
	}
	decision, err := l.ask(ctx, body)
	if err != nil {
		decision, err = l.ask(ctx, body)
	}
	return decision, err
}

func (l *Limiter) ask(ctx context.Context, body []byte) (Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "POST", l.Server+"/v1/check", bytes.NewReader(body))
	if err != nil {
		return Decision{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	if l.Token != "" {
		request.Header.Set("Authorization", "Bearer "+l.Token)
	}
	response, err := l.Client.Do(request)
	if err != nil {
		return Decision{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var problem struct{ Code, Detail string }
		json.NewDecoder(response.Body).Decode(&problem)
		return Decision{}, fmt.Errorf("sluice: %s: %s", problem.Code, problem.Detail)
	}
	var decision Decision
	err = json.NewDecoder(response.Body).Decode(&decision)
	return decision, err
}

func main() {
	server := os.Getenv("SLUICE_SERVER")
	if server == "" {
		server = "http://127.0.0.1:8080"
	}
	limiter := Limiter{Server: server, Token: os.Getenv("SLUICE_API_TOKEN"), Client: &http.Client{}}
	for i := 0; i < 3; i++ {
		decision, err := limiter.Check(context.Background(), map[string]any{"user": "42"}, 1)
		switch {
		case err != nil:
			// No answer is not a refusal: this program lets the request pass. A login form would not.
			fmt.Println("not asked, passes")
		case decision.Allowed:
			fmt.Printf("allowed, %d left\n", decision.Remaining)
		default:
			fmt.Printf("refused by %s\n", decision.Rule)
		}
	}
}
