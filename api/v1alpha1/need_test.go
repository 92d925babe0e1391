package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestANeedIsAStepsNameOrAnObject(t *testing.T) {
	text := `["sim",{"step":"sim","by":["FILE"]},5,null,{"stepp":"sim"},"",{"by":["FILE"]},{"step":"sim","outcome":"Any"},{"step":"sim","outcome":"Failed"}]`
	var needs []Need
	require.NoError(t, json.Unmarshal([]byte(text), &needs))
	require.Equal(
		t,
		[]Need{
			{Step: "sim"},
			{Step: "sim", By: []string{"FILE"}},
			{Wrong: "5"},
			{Wrong: "null"},
			{Wrong: `{"stepp":"sim"}`},
			{Wrong: `""`},
			{Wrong: `{"by":["FILE"]}`},
			{Step: "sim", Any: true},
			{Wrong: `{"step":"sim","outcome":"Failed"}`},
		},
		needs,
	)
	back, err := json.Marshal(needs)
	require.NoError(t, err)
	require.JSONEq(t, text, string(back), "what is wrong is kept, so that it can be said")
}
