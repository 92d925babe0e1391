package jobcredentials

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"htc.cern.ch/htcd/internal/inputs/jobsecrets"
)

// Holder is an HTCJob with active jobs that have credentials.
type Holder struct {
	Key         string // namespace/name
	UID         string
	Namespace   string
	Credentials []Credential
}

// Freshness says whether all credentials of a Holder are valid, and for some time more.
type Freshness struct {
	Fresh           bool
	Reason, Message string
}

// The reasons of a Freshness beside those of Credential.Read.
const (
	reasonValid      = "Valid"
	reasonNotRenewed = "NotRenewed" // valid, but jobs do not get the next ones
	reasonEnding     = "CredentialEnding"
)

// betweenLooks is how often the ends are looked at.
const betweenLooks = 30 * time.Second

// warnBefore is how long before its end a credential should have been renewed. Tokens are valid for minutes, proxies
// for hours.
var warnBefore = map[Kind]time.Duration{X509Proxy: time.Hour, BearerToken: 5 * time.Minute}

// Watch watches the ends of credentials. Set its fields before its first use.
type Watch struct {
	Secrets Secrets
	Holders func() []Holder
	// Changed receives the key of a Holder whose Freshness has changed.
	Changed func(key string)
	Served  bool // jobs get new credentials
	Now     func() time.Time

	mu    sync.Mutex
	found map[string]Freshness // by UID
}

// Of returns what is known about the Holder with that UID, nil if nothing is.
func (w *Watch) Of(uid string) *Freshness {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f, known := w.found[uid]; known {
		return &f
	}
	return nil
}

// The states that States counts.
const (
	stateFresh    = "fresh"
	stateEnding   = "ending"
	stateEnded    = "ended"
	stateUnusable = "unusable"
)

// States lists them.
var States = []string{stateFresh, stateEnding, stateEnded, stateUnusable}

// States counts the holders by state.
func (w *Watch) States() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := map[string]int{}
	for _, f := range w.found {
		switch {
		case f.Fresh:
			n[stateFresh]++
		case f.Reason == reasonEnding:
			n[stateEnding]++
		case f.Reason == ReasonEnded:
			n[stateEnded]++
		default:
			n[stateUnusable]++
		}
	}
	return n
}

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	wait.NonSlidingUntilWithContext(ctx, w.Look, betweenLooks)
}

// Look looks once.
func (w *Watch) Look(ctx context.Context) {
	found := map[string]Freshness{}
	holders := w.Holders()
	for _, holder := range holders {
		f, err := w.judge(ctx, holder)
		switch before := w.Of(holder.UID); {
		case ctx.Err() != nil:
			return
		case err == nil:
			found[holder.UID] = f
		case before != nil:
			found[holder.UID] = *before
		}
	}
	w.mu.Lock()
	before := w.found
	w.found = found
	w.mu.Unlock()
	for _, holder := range holders {
		if f, known := found[holder.UID]; known && before[holder.UID] != f {
			w.Changed(holder.Key)
		}
	}
}

// judge returns what is worst. An error means that nothing could be found out.
func (w *Watch) judge(ctx context.Context, holder Holder) (Freshness, error) {
	var ends []string
	var worst *Freshness
	for _, c := range holder.Credentials {
		content, err := c.Read(ctx, w.Secrets, holder.Namespace, w.Now())
		if e, ok := errors.AsType[*jobsecrets.Unusable](err); ok {
			return Freshness{
				Reason:  e.Reason,
				Message: fmt.Sprintf("credential %s: %s; jobs that run keep the one they have", c.Name, e.Message),
			}, nil
		}
		if err != nil {
			return Freshness{}, err
		}
		end, known := c.end(content)
		if !known {
			continue
		}
		says := fmt.Sprintf("%s ends at %s", c.Name, end.UTC().Format(time.RFC3339))
		ends = append(ends, says)
		if worst == nil && !w.Now().Before(end.Add(-warnBefore[c.Kind])) {
			worst = &Freshness{Reason: reasonEnding, Message: says + fmt.Sprintf("; renew the Secret %s", c.Secret)}
		}
	}
	if worst != nil {
		return *worst, nil
	}
	says := strings.Join(ends, ", ")
	if says == "" {
		says = "nothing is known of the ends of the credentials"
	}
	if !w.Served {
		return Freshness{
			true,
			reasonNotRenewed,
			says + "; jobs keep those that they were sent with, because htcd renews them by https only and its --callback-url is not https",
		}, nil
	}
	return Freshness{true, reasonValid, says}, nil
}
