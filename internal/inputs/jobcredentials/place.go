package jobcredentials

import (
	"context"
	"strconv"
	"strings"
)

// place is whose credentials are asked for: those of an HTCJob's run, or of a step of a workflow's DAG.
type place struct {
	uid           string
	attempt, step int // step is noStep for an HTCJob
}

const noStep = -1

// placeOf reads UID/ATTEMPT or UID/ATTEMPT/STEP.
func placeOf(path string) (at place, ok bool) {
	words := strings.Split(path, "/")
	if len(words) < 2 || len(words) > 3 || len(words[0]) > 64 {
		return at, false
	}
	at = place{uid: words[0], step: noStep}
	var err error
	if at.attempt, err = strconv.Atoi(words[1]); err != nil || at.attempt < 1 {
		return at, false
	}
	if len(words) == 3 {
		at.step, err = strconv.Atoi(words[2])
		return at, err == nil && at.step >= 0
	}
	return at, true
}

func (p place) ask(ctx context.Context, runs Runs) (Run, error) {
	if p.step == noStep {
		return runs.CredentialsOf(ctx, p.uid, p.attempt)
	}
	return runs.CredentialsOfStep(ctx, p.uid, p.attempt, p.step)
}

func (p place) token(callbackHash []byte) string {
	if p.step == noStep {
		return Token(callbackHash)
	}
	return StepToken(callbackHash, p.step)
}
