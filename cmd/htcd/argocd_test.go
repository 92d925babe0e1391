package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// asLua makes of JSON what Argo CD gives to a script.
func asLua(value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := &lua.LTable{}
		for key, each := range v {
			table.RawSetString(key, asLua(each))
		}
		return table
	case []any:
		table := &lua.LTable{}
		for _, each := range v {
			table.Append(asLua(each))
		}
		return table
	case string:
		return lua.LString(v)
	case float64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	}
	return lua.LNil
}

// TestWhatArgoCDMakesOfAnObject runs the scripts by the library with which Argo CD runs them.
func TestWhatArgoCDMakesOfAnObject(t *testing.T) {
	text, err := os.ReadFile("../../deploy/argocd/health.yaml")
	require.NoError(t, err)
	var config struct{ Data map[string]string }
	require.NoError(t, yaml.UnmarshalStrict(text, &config))
	scripts := config.Data
	condition := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "Because", Message: "of something"}
	}
	for name, c := range map[string]struct {
		generation, observed int64
		conditions           []metav1.Condition
		is, says             string
	}{
		"new":               {1, 0, nil, "Progressing", "not begun"},
		"edited":            {2, 1, []metav1.Condition{condition(v1alpha1.ConditionComplete, "True")}, "Progressing", "not begun"},
		"at work":           {1, 1, []metav1.Condition{condition(v1alpha1.ConditionComplete, "False"), condition(v1alpha1.ConditionReconciling, "True")}, "Progressing", "12 of 20"},
		"held":              {1, 1, []metav1.Condition{condition(v1alpha1.ConditionHeld, "True"), condition(v1alpha1.ConditionReconciling, "True")}, "Progressing", "Because: of something"},
		"done":              {3, 3, []metav1.Condition{condition(v1alpha1.ConditionComplete, "True"), condition(v1alpha1.ConditionFailed, "False")}, "Healthy", "Because"},
		"failed":            {1, 1, []metav1.Condition{condition(v1alpha1.ConditionFailed, "True"), condition(v1alpha1.ConditionStalled, "True")}, "Degraded", "Because"},
		"suspended":         {1, 1, []metav1.Condition{condition(v1alpha1.ConditionSuspended, "True"), condition(v1alpha1.ConditionComplete, "False")}, "Suspended", "Because"},
		"removed by others": {1, 1, []metav1.Condition{condition(v1alpha1.ConditionStalled, "True")}, "Degraded", "Because"},
	} {
		job := v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{Generation: c.generation}}
		job.Status.ObservedGeneration, job.Status.Conditions, job.Status.Message = c.observed, c.conditions, "12 of 20 jobs have ended"
		text, err := json.Marshal(job)
		require.NoError(t, err)
		var object map[string]any
		require.NoError(t, json.Unmarshal(text, &object))
		for _, kind := range []string{v1alpha1.Kind, v1alpha1.WorkflowKind} {
			state := lua.NewState(lua.Options{SkipOpenLibs: true})
			lua.OpenBase(state)
			state.SetGlobal("obj", asLua(object))
			require.NoError(t, state.DoString(scripts["resource.customizations.health.htc.cern.ch_"+kind]), name)
			health, is := state.Get(-1).(*lua.LTable)
			require.True(t, is, name)
			require.Equal(t, c.is, lua.LVAsString(health.RawGetString("status")), name)
			require.Contains(t, lua.LVAsString(health.RawGetString("message")), c.says, name)
			state.Close()
		}
	}
}
