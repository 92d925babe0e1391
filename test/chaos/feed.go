package chaos

import (
	"context"

	"htc.cern.ch/htcd/test/lab/parts"
)

// startFeed starts a feed at the usual schedd, and returns the flags with which htcd uses it.
func (p *Player) startFeed(ctx context.Context) ([]string, error) {
	w, err := parts.Open(p.Lab)
	if err != nil {
		return nil, err
	}
	p.undo = append(p.undo, p.Lab.Part(feedLane).Stop)
	return parts.FeedFlags(w), p.mendFeed(ctx)
}

// olderSpool has the feed show a copy of the schedd's files, which does not change any more.
func (p *Player) olderSpool(ctx context.Context) error {
	older := p.Lab.Path("older-spool")
	return p.until(ctx, func() error { // while the schedd replaces one of them, it is not there
		_, err := p.sh(
			ctx,
			`rm -rf "$2"; mkdir "$2"; cp -p "$1"/job_queue.log "$1"/history* "$2"`,
			p.Lab.Path("condor", "spool"),
			older,
		)
		if err != nil {
			return err
		}
		return parts.ShowSpool(p.Lab, older)
	})
}

func (p *Player) newestSpool(context.Context) error {
	return parts.ShowSpool(p.Lab, p.Lab.Path("condor", "spool"))
}

// mendFeed starts the feed, if the run has one, with the schedd's own files.
func (p *Player) mendFeed(ctx context.Context) error {
	if !p.Feed {
		return nil
	}
	if err := p.newestSpool(ctx); err != nil {
		return err
	}
	return p.Lab.Part(feedLane).Start(ctx)
}
