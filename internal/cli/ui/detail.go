package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/a-h/templ"
)

// shown is a page about one object.
type shown struct {
	title string
	main  templ.Component
}

// show makes the page about an object, as it and what htcd knows of it are now. It looks at q for what of it is wanted.
type show func(ctx context.Context, r ref, object any, q url.Values) shown

// How often a page about one object is made again: at its changes, and at intervals for what no watch tells (Events,
// the rows of the ledger). A page that took long to make is made less often.
const (
	leastPause = 500 * time.Millisecond
	mostPause  = 5 * time.Second
	share      = 10 // of the time, a tenth is spent on making it
)

// detail returns the handlers of a page about objects of a kind: of the whole page, and of its main part whenever that
// has changed.
func (s *Server) detail(k kind, make show) (whole, live http.HandlerFunc) {
	find := func(r *http.Request) (ref, any) {
		to := ref{k, r.PathValue("namespace"), r.PathValue("name")}
		object, _ := s.store.get(to)
		return to, object
	}
	whole = func(w http.ResponseWriter, r *http.Request) {
		to, object := find(r)
		if object == nil {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(http.StatusNotFound)
			s.sorry(w, r, "Not found", fmt.Errorf("there is no %s %s here, or you may not see it", k, to.Name))
			return
		}
		p := make(r.Context(), to, object, r.URL.Query())
		live := s.guard.base + "/live" + linkTo(to) + "?" + r.URL.RawQuery
		s.page(w, r, page{Title: p.title, main: p.main, Live: live}, k)
	}
	live = func(w http.ResponseWriter, r *http.Request) {
		to, object := find(r)
		out := beginEvents(w)
		for last, stale := "", "unknown"; out.err == nil; {
			if now := s.store.stale(); now != stale {
				stale = now
				out.send("state", stale)
			}
			if object == nil {
				out.send("gone", fragment(r.Context(), sorry(to.Name, "It was deleted.")))
				out.send("end", "")
				return
			}
			began := time.Now()
			text := fragment(r.Context(), make(r.Context(), to, object, r.URL.Query()).main)
			if text != last && r.Context().Err() == nil {
				last = text
				out.send("page", text)
			}
			pause := max(leastPause, share*time.Since(began))
			if object, out.err = s.next(
				r.Context(),
				to,
				object,
				stale,
				pause,
				out,
			); errors.Is(
				out.err,
				context.Canceled,
			) {
				return
			}
		}
	}
	return whole, live
}

// next waits for a pause, and then until the object, or whether it is up to date, has changed, or for mostPause. It
// returns the object as it is then.
func (s *Server) next(
	ctx context.Context,
	to ref,
	object any,
	stale string,
	pause time.Duration,
	out *events,
) (any, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(pause):
	}
	again := time.NewTimer(max(mostPause, pause))
	defer again.Stop()
	for {
		now, more := s.store.get(to)
		if now != object || s.store.stale() != stale {
			return now, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-again.C:
			out.comment()
			return now, out.err
		case <-more:
		}
	}
}
