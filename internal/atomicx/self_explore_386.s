//go:build explore

#include "textflag.h"

// func Self() uintptr
TEXT ·Self(SB), NOSPLIT, $0-4
	MOVL	(TLS), AX
	MOVL	AX, ret+0(FP)
	RET
