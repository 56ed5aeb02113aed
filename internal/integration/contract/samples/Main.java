import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

public class Main {
    public static void main(String[] args) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] fields = line.split("\t", -1);
            byte[] body = Base64.getDecoder().decode(fields[5]);
            for (int i = 2; i < 5; i++) {
                fields[i] = fields[i].isEmpty() ? null : fields[i];
            }
            System.out.println(Notification.verify(fields[2], fields[3], fields[4], body) ? "valid" : "invalid");
        }
    }
}
