package daemon

import (
	"net/http"
	"strings"

	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
	"htc.cern.ch/htcd/internal/notify"
)

// withCredentials also serves the credentials of jobs, if jobs reach the receiver by https.
func (d *daemon) withCredentials(receiver http.Handler, l *loop) http.Handler {
	if !jobcredentials.Served(d.o.CallbackURL) {
		d.log.Warn().Msg(
			"jobs keep the credentials that they are sent with: new ones are served only if --callback-url is https",
		)
		return receiver
	}
	credentials := notify.Holding(jobcredentials.NewHandler(l, l.jobSecrets, d.log))
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path, jobcredentials.Path) {
			credentials.ServeHTTP(w, request)
			return
		}
		receiver.ServeHTTP(w, request)
	})
}
