package backend

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
)

// silentKDC is a KDC that refuses everybody once as many have asked as are asked at once.
type silentKDC struct {
	Credentials
	asked sync.WaitGroup
}

func (s *silentKDC) Identity(context.Context, Target) (schedd.Identity, error) {
	s.asked.Done()
	s.asked.Wait()
	return schedd.Identity{}, &CredentialError{Reason: "KDCUnreachable"}
}

func TestASilentKDCIsWaitedForByManyAccountsAtOnce(t *testing.T) {
	accounts := map[Account]struct{}{}
	for i := range provedAtOnce {
		accounts[Account{Namespace: fmt.Sprint(i)}] = struct{}{}
	}
	kdc := &silentKDC{}
	kdc.asked.Add(provedAtOnce)
	var told map[Account]bool
	p := Prover{
		Credentials: kdc,
		Accounts:    func() map[Account]struct{} { return accounts },
		Turned:      func(turned map[Account]bool) { told = turned },
	}
	p.Prove(t.Context(), true)
	require.Len(t, told, provedAtOnce)
	require.Equal(t, "KDCUnreachable", p.Of(Account{Namespace: "0"}).Err.Reason)
}
