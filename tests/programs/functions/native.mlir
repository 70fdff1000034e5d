func.func private @native_add(i32, i32) -> i32 attributes {tfrt.native}
func.func private @native_async_add(i32, i32) -> i32 attributes {tfrt.native}
func.func private @native_error() -> i32 attributes {tfrt.native}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 3,3
func.func @main() -> (i32, i32) {
  %one = tfrt.constant.i32 1
  %two = tfrt.constant.i32 2
  %a = tfrt.call @native_add(%one, %two) : (i32, i32) -> (i32)
  %b = tfrt.call @native_async_add(%one, %two) : (i32, i32) -> (i32)
  tfrt.return %a, %b : i32, i32
}
