package ledger

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
)

// migrations are applied in the order of their names; PRAGMA user_version
// counts the applied ones. They only add, so that an older htcd also works on a
// newer file.
//
//go:embed migration/*.sql
var migrations embed.FS

// migrate brings the tables up to date, in one transaction. The count is read under the write lock, because another
// htcd may be doing the same; taking that lock also shows at once whether the file can be written at all.
func migrate(ctx context.Context, c *conn) error {
	names, err := fs.Glob(migrations, "migration/*.sql")
	if err != nil {
		return err
	}
	if _, err := c.sql.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	defer func() { _, _ = c.sql.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`) }() // an error after COMMIT

	var have int
	if err := c.sql.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&have); err != nil {
		return err
	}
	if have >= len(names) {
		return nil
	}
	for _, name := range names[have:] {
		step, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := c.sql.ExecContext(ctx, string(step)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	_, err = c.sql.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d; COMMIT`, len(names)))
	return err
}
