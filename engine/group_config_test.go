package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestGroupConfig_RoundTrip: what Config returns, with every default filled in, makes a group that is the same.
func TestGroupConfig_RoundTrip(t *testing.T) {
	for name, c := range map[string]engine.GroupConfig{
		"defaults":  {},
		"unlimited": {MaxDeliveries: engine.Unlimited, ProgressTimeout: engine.Unlimited, ExpireAfter: engine.Unlimited},
		"own": {
			Kind: engine.Shared, Mode: engine.Manual, MaxDeliveries: 3, Backoff: []time.Duration{time.Second},
			Settling: engine.Settling{AckWait: []time.Duration{time.Minute}, MaxInFlight: 7},
			Grace:    time.Hour, RevokeTimeout: time.Second, ProgressTimeout: time.Minute, ExpireAfter: time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, engine.Config{})
			create(t, e, "t", engine.TopicConfig{})
			given := newGroup(t, e, "a", c, "t").Config()
			again := newGroup(t, e, "b", given, "t").Config()
			assert.Equal(t, given, again)
			for _, d := range []time.Duration{given.Grace, given.RevokeTimeout, given.ProgressTimeout, given.ExpireAfter} {
				assert.NotZero(t, d)
			}
			assert.NotZero(t, given.MaxDeliveries)
			assert.NotEmpty(t, given.Backoff)
			assert.NotEmpty(t, given.Settling.AckWait)
			assert.NotZero(t, given.Settling.MaxInFlight)
			if name == "unlimited" {
				assert.EqualValues(t, engine.Unlimited, given.MaxDeliveries)
				assert.EqualValues(t, engine.Unlimited, given.ExpireAfter)
			}
		})
	}
}

// TestMemberConfig_ByKeyIsBounded: numbers that no memory has room for are refused.
func TestMemberConfig_ByKeyIsBounded(t *testing.T) {
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	for _, p := range []engine.Parallelism{
		{Handlers: 1 << 30}, {Handlers: -1}, {Handlers: 2, MaxInFlight: 1 << 30}, {Handlers: 2, MaxKeys: 1 << 30}, {Handlers: 2, MaxKeys: -1},
	} {
		m, err := g.Join(ignore, engine.MemberConfig{ByKey: p})
		require.ErrorIs(t, err, engine.ErrConfig)
		require.Nil(t, m)
		_, err = topic.Subscribe(ignore, engine.SubscribeConfig{ByKey: p})
		require.ErrorIs(t, err, engine.ErrConfig)
	}
}
