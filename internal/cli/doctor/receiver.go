package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// receiver goes the route of jobs, and checks that htcd answers: it refuses everything but POST in words of its own.
func receiver(url string, roots *x509.CertPool) Check {
	return Check{Name: "receiver", Settles: leads, Try: func(ctx context.Context) (string, error) {
		client := &http.Client{
			Timeout: 10 * time.Second,
			Transport: &http.Transport{
				DisableKeepAlives: true,
				TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return "", err
		}
		response, err := client.Do(request)
		if err != nil {
			return "", &Trouble{
				"nobody answers: " + err.Error(),
				"make sure that an htcd works, and that --callback-url leads through the Ingress to its Service (with https, also that its certificate is of an authority in --callback-ca, or one that this machine trusts). Meanwhile the cross-check finds the ends of jobs",
			}
		}
		defer response.Body.Close()
		words, _ := io.ReadAll(io.LimitReader(response.Body, 512))
		return ours(url, response.StatusCode, strings.TrimSpace(string(words)))
	}}
}

func ours(url string, status int, words string) (string, error) {
	if status == http.StatusMethodNotAllowed && strings.Contains(words, "an event is sent with POST") {
		return url + " is htcd's, seen from here and not from the execute nodes: try curl there", nil
	}
	do := "check the host and path of the Ingress: /cloudevents of the Service htcd"
	if status >= 500 {
		do = "the Ingress works but reaches no htcd that is ready: kubectl -n htcd get pods"
	}
	return "", &Trouble{fmt.Sprintf("%s answers %d, and it is not htcd: %.80q", url, status, words), do}
}
