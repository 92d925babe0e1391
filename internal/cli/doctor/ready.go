package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// ready asks the htcd that works here what it waits for: it alone opens the ledger, and knows what it could not write.
func ready(listen string) Check {
	return Check{Name: "ready", Settles: leads, Try: func(ctx context.Context) (string, error) {
		host, port, err := net.SplitHostPort(listen)
		if err != nil || port == "0" {
			return "", notHere("--health-listen has no port by which htcd could be asked")
		}
		ctx, cancel := context.WithTimeout(ctx, answers)
		defer cancel()
		url := "http://" + net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port) + "/readyz"
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return "", err
		}
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return "", notHere("no htcd works here")
		case err != nil:
			return "", &Trouble{
				"htcd does not answer: " + err.Error(),
				"see whether it is stopped, or has no CPU; restart it",
			}
		}
		defer response.Body.Close()
		words, _ := io.ReadAll(io.LimitReader(response.Body, maxWords))
		said := strings.TrimSpace(string(words))
		switch response.StatusCode {
		case http.StatusOK:
			return "htcd says: " + said, nil
		case http.StatusServiceUnavailable:
			return "", &Trouble{"htcd is not ready: " + said, "see docs/troubleshoot.md, The pod does not get ready"}
		}
		return "", notHere(fmt.Sprintf("%s is not htcd's: it answers %d", url, response.StatusCode))
	}}
}

// answers is how long htcd may take to say whether it is ready, and maxWords how much it says.
const (
	answers  = 5 * time.Second
	maxWords = 2 << 10
)
