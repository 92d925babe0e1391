package command

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"htc.cern.ch/htcd/internal/cli/logger"
	"htc.cern.ch/htcd/internal/cli/operator"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd/feed"
)

// feedOptions are the flags of htcd feed.
type feedOptions struct {
	listen, spool, history, cert, key, clientCA, level, format string

	allow []string
}

// feed serves what a schedd's files say.
func (s settings) feed() *cobra.Command {
	var o feedOptions
	c := &cobra.Command{
		Use:   "feed --spool DIRECTORY --tls-cert FILE --tls-key FILE --client-ca FILE --allow NAME=OWNER",
		Short: "Show htcd the jobs of a schedd, from the files that the schedd writes",
		Long: `Follow a schedd's job_queue.log and history, and show a remote htcd the jobs in them that are its own, over mutual TLS. That htcd, with --feed,
then runs no condor_q and no condor_history to follow its jobs. Nothing is written, and the schedd is not asked.

It runs on the schedd's host as the account that owns the files, as a daemon of condor_master, or in a pod with the files mounted read-only.
See docs/feed.md.

Every flag can also be set in the environment, as those of htcd run.

SIGTERM and SIGINT stop it, and the exit code is 0.`,
		Args: setting.NoArguments,
	}
	o.flags(c.Flags())
	return s.begin(c, c.Flags(), func([]string) error {
		for _, required := range []struct{ flag, value string }{
			{"spool", o.spool},
			{"tls-cert", o.cert},
			{"tls-key", o.key},
			{"client-ca", o.clientCA},
			{"allow", strings.Join(o.allow, ",")},
		} {
			if required.value == "" {
				return setting.Usage{Err: fmt.Errorf("--%s is required", required.flag)}
			}
		}
		log, err := logger.New(os.Stderr, o.level, o.format)
		if err != nil {
			return setting.Usage{Err: err}
		}
		return o.serve(c.Context(), log)
	})
}

// flags binds every option to its flag.
func (o *feedOptions) flags(f *pflag.FlagSet) {
	setting.Text(f, &o.listen, "listen", ":9619", setting.Address, "`address` at which htcd asks")
	setting.Text(f, &o.spool, "spool", "", setting.Place,
		"the schedd's SPOOL, the `directory` with job_queue.log (required)")
	setting.Text(f, &o.history, "history", "", setting.Place, "the schedd's HISTORY `file`; empty: history in --spool")
	setting.Text(f, &o.cert, "tls-cert", "", setting.Place,
		"PEM `file` with the certificate, followed by the intermediate ones; reloaded when it changes (required)")
	setting.Text(f, &o.key, "tls-key", "", setting.Place, "PEM `file` with the key of --tls-cert (required)")
	setting.Text(f, &o.clientCA, "client-ca", "", setting.Place,
		"PEM `file` of the authorities that sign the certificates of clients; read at the start (required)")
	setting.List(f, &o.allow, "allow", nil, operator.FeedClient,
		"`clients`, each as NAME=OWNER: the common name of its certificate, and an account whose jobs it may see; * for all accounts (required)")
	logger.Flags(f, &o.level, &o.format, "json")
}

// owners returns whose jobs each client may see, and whose jobs are mirrored at all.
func (o feedOptions) owners() (feed.Clients, feed.Owners) {
	clients, all := feed.Clients{}, feed.Owners{}
	for _, entry := range o.allow {
		name, account, _ := strings.Cut(entry, "=")
		owners, known := clients[name]
		switch {
		case account == "*":
			clients[name], all = nil, nil
		case known && owners == nil: // it may see all
		default:
			if owners == nil {
				owners = feed.Owners{}
				clients[name] = owners
			}
			owners[account] = true
			if all != nil {
				all[account] = true
			}
		}
	}
	return clients, all
}

func (o feedOptions) serve(ctx context.Context, log zerolog.Logger) error {
	config, err := notify.TLS(o.cert, o.key, log)
	if err != nil {
		return err
	}
	if config.ClientCAs, err = notify.Roots(o.clientCA); err != nil {
		return fmt.Errorf("--client-ca: %w", err)
	}
	config.ClientAuth, config.MinVersion = tls.RequireAndVerifyClientCert, tls.VersionTLS13
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	clients, all := o.owners()
	mirror := feed.NewMirror(feed.Options{Spool: o.spool, History: o.history, Owners: all})
	server := feed.NewServer(mirror, clients, log)
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		mirror.Run(ctx, func(problem string) {
			if problem == "" {
				log.Info().
					Str("mark", mirror.State().Mark).
					Int("jobs", mirror.State().Jobs).
					Msg("following the schedd's files")
				return
			}
			log.Error().Str("problem", problem).Msg("the schedd's files cannot be read, so clients ask HTCondor")
		})
	}()
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	log.Info().Str("address", listener.Addr().String()).Msg("serving")
	err = server.Serve(tls.NewListener(notify.Limit(listener, func(notify.Unanswered) {}), config))
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		<-ended
		return nil
	}
	return err
}
