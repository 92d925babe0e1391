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

// migrate brings the tables up to date, each step in a transaction of its own.
func migrate(ctx context.Context, c *conn) error {
	names, err := fs.Glob(migrations, "migration/*.sql")
	if err != nil {
		return err
	}
	for i, name := range names {
		step, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if err := applyStep(ctx, c, i+1, string(step)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// applyStep applies one step unless the file has it. The count is read under
// the write lock, because another htcd may be doing the same; taking that lock
// also shows at once whether the file can be written at all.
func applyStep(ctx context.Context, c *conn, version int, step string) error {
	if _, err := c.sql.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	defer func() { _, _ = c.sql.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`) }() // an error after COMMIT

	var have int
	if err := c.sql.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&have); err != nil {
		return err
	}
	if have >= version {
		return nil
	}
	if _, err := c.sql.ExecContext(ctx, step+fmt.Sprintf(`; PRAGMA user_version = %d`, version)); err != nil {
		return err
	}
	_, err := c.sql.ExecContext(ctx, `COMMIT`)
	return err
}
