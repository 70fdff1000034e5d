// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f() -> i32 {
  tfrt.return %x : i32 // expected-error {{use of undeclared SSA value name '%x'}}
}
