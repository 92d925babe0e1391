package jobcredentials

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxAnswer is more than sixteen credentials of the largest size need.
const maxAnswer = 4 << 20

// Pull asks once, as a job does, and copies the answer to w. roots are the only authorities to trust; nil: the
// system's. No redirect is followed with the token, and no error contains it.
func Pull(ctx context.Context, url, token string, roots *x509.CertPool, timeout time.Duration, w io.Writer) error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	client := &http.Client{
		Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if request.URL.Scheme != "https" {
		return fmt.Errorf("%s is not an https URL", url)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", answer.Status)
	}
	_, err = io.Copy(w, io.LimitReader(answer.Body, maxAnswer))
	return err
}
