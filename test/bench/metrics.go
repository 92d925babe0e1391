package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
)

// metrics calls fn for each line of what a program of the lab serves at /metrics.
func metrics(ctx context.Context, port int, fn func(line string) error) error {
	request, err := http.NewRequestWithContext(
		ctx,
		http.MethodGet,
		fmt.Sprintf("http://127.0.0.1:%d/metrics", port),
		nil,
	)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if err := fn(lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}
