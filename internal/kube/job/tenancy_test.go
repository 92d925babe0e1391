package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestJobsAreSentAndRemovedAsTheNamespacesOwnAccount(t *testing.T) {
	w := newWorld(t)
	w.accounts["default"] = "alice"
	w.apply(htcjob("hers"))
	require.Equal(t, "alice", w.schedd.Jobs()[0].Owner)
	w.delete("hers")
	require.Empty(t, w.schedd.Jobs())
	require.Nil(t, w.job("hers"))
}

func TestJobsOfBeforeTheNamespaceHadAnAccountAreRemovedAsTheCommonOne(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("early"))
	w.accounts["default"] = "alice"
	w.delete("early")
	require.Empty(t, w.schedd.Jobs())
	require.Nil(t, w.job("early"))
}

func TestADeletionThatNeedsAnotherAccountSaysWhose(t *testing.T) {
	w := newWorld(t)
	w.accounts["default"] = "alice"
	w.apply(htcjob("hers"))
	w.accounts["default"] = "bob"
	w.delete("hers")
	require.Len(t, w.schedd.Jobs(), 1)
	w.later(0)
	said := meta.FindStatusCondition(w.job("hers").Status.Conditions, v1alpha1.ConditionCredentials)
	require.Equal(t, metav1.ConditionFalse, said.Status)
	require.Equal(t, "OtherAccount", said.Reason)
	require.Contains(t, said.Message, "1 job of the account alice, such as 1.0,")
	require.Contains(t, said.Message, v1alpha1.AbandonAnnotation)

	w.accounts["default"] = "alice"
	w.SecretChanged("default")
	w.settle()
	w.later(2 * recovery.AbsentTwice)
	require.Empty(t, w.schedd.Jobs())
	require.Nil(t, w.job("hers"))
}

func TestAHalfSpooledClusterOfAnotherAccountIsNotWaitedForInSilence(t *testing.T) {
	w := newWorld(t)
	w.accounts["default"] = "alice"
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: true})
	w.apply(htcjob("hers"))
	w.schedd.Edit(1, -1, func(j *condor.Job) {
		j.Status, j.HoldReasonCode, j.StageInFinish, j.QDate = condor.Held, 16, 0, w.clock.Add(-time.Hour).Unix()
	})
	w.accounts["default"] = "bob"
	w.later(time.Hour)
	w.later(0)
	said := meta.FindStatusCondition(w.job("hers").Status.Conditions, v1alpha1.ConditionCredentials)
	require.NotNil(t, said)
	require.Equal(t, "OtherAccount", said.Reason)
}
