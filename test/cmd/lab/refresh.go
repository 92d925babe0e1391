package main

import (
	"context"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
)

// refresh brings a running lab up to date: parts that were stopped or frozen run again, htcd is the newest.
func refresh(ctx context.Context, l *lab.Lab, clone string, changed bool, args []string, p *progress) error {
	event, err := l.Ask(ctx, lab.Request{Op: lab.OpStatus}, nil)
	if err != nil {
		return err
	}
	withHTCd := false
	for _, part := range event.Parts {
		if part.Part == "htcd" {
			withHTCd = true
			continue
		}
		if part.State == "running" || part.Spare && part.State == "stopped" {
			continue
		}
		if err := l.Part(part.Part).Start(ctx); err != nil {
			return err
		}
		p.printf("%s: was %s, started", part.Part, part.State)
	}
	if withHTCd {
		if err := refreshHTCd(ctx, l, clone, changed, args, p); err != nil {
			return err
		}
	}
	p.printf("the lab is up: . %s", l.Path("env"))
	return nil
}

func refreshHTCd(ctx context.Context, l *lab.Lab, clone string, changed bool, args []string, p *progress) error {
	if _, err := l.Run(ctx, "kubectl", "apply", "-k", parts.Kustomization(clone)); err != nil {
		return err
	}
	if !changed && len(args) == 0 {
		if err := l.Part("htcd").Start(ctx); err != nil {
			return err
		}
		p.printf("htcd: unchanged, answers")
		return nil
	}
	if err := l.Part("htcd").Restart(ctx, args...); err != nil {
		return err
	}
	p.printf("htcd: restarted")
	return nil
}
