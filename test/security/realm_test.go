package security

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// strangeKDC listens as the KDC of somebody's own realm would, and counts who comes.
func strangeKDC(t *testing.T) (port int, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tcp.Close()) })
	port = tcp.Addr().(*net.TCPAddr).Port
	udp, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, udp.Close()) })
	go func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = conn.Close()
		}
	}()
	go func() {
		packet := make([]byte, 1<<16)
		for {
			if _, _, err := udp.ReadFrom(packet); err != nil {
				return
			}
			asked.Add(1)
		}
	}()
	return port, asked
}

// htcd's flags affect all tests: this one runs alone.
func TestNoKDCIsAskedOfARealmThatIsNotListed(t *testing.T) {
	b, stranger, elsewhere := trial.New(t), trial.New(t), trial.New(t)
	port, asked := strangeKDC(t)
	text, err := os.ReadFile(b.Lab.Path("krb", "krb5.conf"))
	require.NoError(t, err)
	config := b.Lab.Path("krb", "strange.conf")
	both := strings.Replace(
		string(text),
		"[realms]\n",
		fmt.Sprintf("[realms]\n    STRANGE.ORG = {\n        kdc = 127.0.0.1:%d\n    }\n", port),
		1,
	)
	require.NoError(t, os.WriteFile(config, []byte(both), 0o644))

	granted(b)
	restarted(t, "--namespace-secrets", "--krb5-config="+config, "--realms="+parts.Realm)
	account(stranger, "robot@STRANGE.ORG", "hush")
	account(elsewhere, `robot@ELSEWHERE.ORG`, "hush")
	refused := func(of *trial.Bench, reason, words string) {
		of.Create("refused", "exit 0\n")
		job := of.Until("refused", "refused", func(job *v1alpha1.HTCJob) bool {
			c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionCredentials)
			return c != nil && c.Reason == reason
		})
		c := of.Condition(job, v1alpha1.ConditionCredentials)
		require.Equal(t, metav1.ConditionFalse, c.Status)
		require.Contains(t, c.Message, words)
		require.NotContains(t, c.Message, "hush")
		of.Kubectl("delete", "htcjob", "refused", "--timeout="+trial.Patience.String())
	}
	refused(
		stranger,
		"RealmNotAllowed",
		`is of the realm "STRANGE.ORG", and htcd asks only KDCs of the realms in --realms: `+parts.Realm,
	)
	refused(elsewhere, "RealmNotAllowed", "ELSEWHERE.ORG")
	b.Create("common", "exit 0\n")
	b.Phase("common", v1alpha1.PhaseSucceeded)
	require.Zero(t, asked.Load())

	// The file alone: what it names is asked, nothing else.
	require.NoError(t, b.Lab.Part("htcd").Restart(t.Context(), "--namespace-secrets", "--krb5-config="+config))
	refused(elsewhere, "RealmNotAllowed", "of the realms in krb5.conf: "+parts.Realm+", STRANGE.ORG;")
	refused(stranger, "KDCUnreachable", "no Kerberos ticket")
	require.NotZero(t, asked.Load())
}
