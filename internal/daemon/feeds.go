package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/feed"
)

// feeds are those of --feed.
type feeds map[schedd.Endpoint]feed.Source

func (d *daemon) newFeeds(condor *schedd.Client) (feeds, error) {
	clients, err := d.o.feedClients()
	if err != nil {
		return nil, err
	}
	all := feeds{}
	for endpoint, client := range clients {
		log := d.log.With().Str("component", "feed").Stringer("schedd", endpoint).Str("feed", client.URL).Logger()
		client.Told = func(problem string) {
			d.counts.Feed(endpoint, problem == "")
			if problem == "" {
				log.Info().Msg("the cross-check reads the feed, and runs neither condor_q nor condor_history")
				return
			}
			log.Warn().
				Str("problem", problem).
				Msg("the feed is not used; the cross-check runs condor_q and condor_history")
		}
		all[endpoint] = feed.Source{Client: client, Jobs: condor.From(client.Ask), Differs: func(jobs []string) {
			d.counts.FeedDiffers(endpoint, len(jobs))
			log.Error().Strs("jobs", jobs).Msg("HTCondor and the feed disagree; HTCondor's answer is used")
		}}
	}
	return all, nil
}

// feedClients returns those of the schedds' feeds, which Run starts.
func (o Options) feedClients() (map[schedd.Endpoint]*feed.Client, error) {
	all := map[schedd.Endpoint]*feed.Client{}
	if len(o.Feeds) == 0 {
		return all, nil
	}
	roots, err := notify.Roots(o.FeedCA)
	if err != nil {
		return nil, fmt.Errorf("--feed-ca: %w", err)
	}
	pair, err := notify.TLS(o.FeedCert, o.FeedKey, zerolog.Nop())
	if err != nil {
		return nil, fmt.Errorf("--feed-cert: %w", err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    roots,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return pair.GetCertificate(nil)
		},
	}
	for _, entry := range o.Feeds {
		name, url, _ := strings.Cut(entry, "=")
		collector, scheddName, both := strings.Cut(name, "/")
		if !both {
			collector, scheddName = "", name
		}
		all[schedd.Endpoint{Collector: collector, Schedd: scheddName}] = &feed.Client{
			URL: url,
			TLS: config,
			Now: time.Now,
		}
	}
	return all, nil
}

// mirror returns an endpoint's feed, nil if it has none.
func (f feeds) mirror(e schedd.Endpoint) crosscheck.Mirror {
	if source, has := f[e]; has {
		return source
	}
	return nil
}

// run follows the feeds until ctx ends. Hints that come while one is followed are one.
func (f feeds) run(
	ctx context.Context,
	synced cache.InformerSynced,
	follow func(context.Context, schedd.Endpoint) error,
) {
	if len(f) == 0 || !cache.WaitForCacheSync(ctx.Done(), synced) {
		<-ctx.Done()
		return
	}
	var all sync.WaitGroup
	for endpoint, source := range f {
		hints := make(chan struct{}, 1)
		all.Go(func() {
			source.Run(ctx, func() {
				select {
				case hints <- struct{}{}:
				default:
				}
			})
		})
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-hints:
					_ = follow(ctx, endpoint) // the next pass does it again, and says what is wrong
				}
			}
		})
	}
	all.Wait()
}
