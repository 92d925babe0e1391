package submit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhoIsChargedForAJobOfAGroup(t *testing.T) {
	const owner = "My.AcctGroupUser = Owner\n" + `My.AccountingGroup = strcat(AcctGroup, ".", Owner)` + "\n"
	for name, c := range map[string]struct {
		options string
		job     JobOptions
		factory bool
		owner   bool
	}{
		"its owner":                                  {"accounting_group = group_x", JobOptions{}, false, true},
		"its owner, by the field":                    {"", JobOptions{AccountingGroup: "group_x"}, false, true},
		"its owner, if it is nice":                   {"nice_user = true", JobOptions{}, false, true},
		"without a group, its owner in any case":     {"nice_user = false", JobOptions{}, false, false},
		"its owner, who runs condor_submit":          {"", JobOptions{AccountingGroup: "group_x"}, true, false},
		"who the user says":                          {"accounting_group = a\naccounting_group_user = alice", JobOptions{}, false, false},
		"who the user says, by the attribute's name": {"accounting_group = a\nAcctGroupUser = alice", JobOptions{}, false, false},
		"who the user says, by an attribute":         {"nice_user = true\n+acctgroupuser = \"alice\"", JobOptions{}, false, false},
		"what the user says":                         {"accounting_group = a\n+accountinggroup = \"b.alice\"", JobOptions{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := description()
			d.Options, d.JobOptions, d.Allow = c.options, c.job, []string{"accounting_group_user", "AcctGroupUser", "+AcctGroupUser"}
			file := FileSubmit
			if c.factory {
				d.Parallelism, file = 1, fileFactory
			}
			s, err := d.Render()
			require.NoError(t, err)
			for _, f := range s.Files {
				if f.Name == file {
					require.Equal(t, c.owner, strings.Contains(f.Content, owner))
					require.Equal(t, c.owner, strings.Contains(f.Content, "Owner"))
				}
			}
		})
	}
}
