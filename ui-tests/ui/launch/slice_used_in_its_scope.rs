//! A slice that is mutably borrowed is not accessed until the scope has ended.

fn main() -> titan::Result<()> {
    let mut y = vec![1.0f32; 4];
    titan::cpu::scope(|host| {
        let lent = host.borrow_mut(&mut y, [4])?;
        y[0] = 2.0;
        println!("{:?}", lent.to_vec()?);
        Ok(())
    })
}
