package doctor

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// receiver goes where jobs go, and looks whether it is htcd that answers: it refuses all but POST in words of its own.
func receiver(url string) Check {
	return Check{Name: "receiver", Settles: leads, Try: func(ctx context.Context) (string, error) {
		client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return "", err
		}
		response, err := client.Do(request)
		if err != nil {
			return "", &Trouble{"nobody answers: " + err.Error(),
				"see that a htcd works, and that --callback-url leads to its Service by the Ingress (and with https, that this machine knows the issuer). Jobs' ends are found by the cross-check meanwhile"}
		}
		defer response.Body.Close()
		words, _ := io.ReadAll(io.LimitReader(response.Body, 512))
		return ours(url, response.StatusCode, strings.TrimSpace(string(words)))
	}}
}

func ours(url string, status int, words string) (string, error) {
	if status == http.StatusMethodNotAllowed && strings.Contains(words, "an event is sent with POST") {
		return url + " is htcd's; this is how it looks from here, not from the execute nodes, whose way is theirs: try curl there", nil
	}
	do := "see which host and path the Ingress has: /cloudevents of the Service htcd"
	if status >= 500 {
		do = "the way in works but leads to no htcd that is ready: kubectl -n htcd get pods"
	}
	return "", &Trouble{fmt.Sprintf("%s answers %d, and it is not htcd: %.80q", url, status, words), do}
}
